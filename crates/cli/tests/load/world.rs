//! A service to load into, and a place to load from.

use crate::support::{Place, Said};
use std::net::Ipv4Addr;
use tidegate_drill::{Service, Spec};
use tokio::runtime::{Builder, Runtime};

/// A service in this process, and a place to load from.
pub struct World {
    pub place: Place,
    pub service: Service,
    _runtime: Runtime,
}

impl World {
    pub fn new(spec: Spec) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let _entered = runtime.enter();
        let service = Service::start(spec, (Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        drop(_entered);
        Self { place: Place::new(), service, _runtime: runtime }
    }

    pub fn url(&self) -> String {
        format!("{}/records", self.service.url())
    }

    pub fn args<'a>(&self, url: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        [["load", "in.ndjson", "--to", url, "--allow", "127.0.0.1"].as_slice(), more].concat()
    }

    pub fn load(&self, more: &[&str]) -> Said {
        let url = self.url();
        self.place.tidegate(&self.args(&url, more))
    }

    pub fn stored(&self) -> (u64, u64) {
        let counters = self.service.counters();
        (counters.records, counters.duplicates)
    }
}

pub fn lines(records: u64) -> String {
    (0..records).map(|id| format!("{{\"id\":{id},\"name\":\"somebody\"}}\n")).collect()
}

/// One line, and an exit code that says that nothing was done.
pub fn refused(said: &Said, expected: &str) {
    assert!([1, 2].contains(&said.code), "{}: {}", said.code, said.stderr);
    assert_eq!(said.stderr.lines().count(), 1, "{}", said.stderr);
    assert!(said.stderr.contains(expected), "{expected}: {}", said.stderr);
}
