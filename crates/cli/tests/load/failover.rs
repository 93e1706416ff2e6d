//! Loads whose store goes back in time: every record is sent, and what the store says in the end is true.

use crate::{
    support::{Said, wait_until},
    world::World,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use std::{path::PathBuf, process::Child, time::Duration};
use tidegate_drill::{
    Spec,
    postgres::{Cluster, Crash, Options},
};

const RECORDS: u64 = 6_000;
/// One in so many is refused by the service …
const BAD: u64 = 101;
/// … and one in so many is no record.
const MALFORMED: u64 = 211;
/// A load whose store is gone for long may end. The same command goes on then.
const MOST_STARTS: usize = 10;

fn start(settings: &str) -> Cluster {
    let programs = std::env::var_os("TIDEGATE_TEST_POSTGRES_BIN").map(PathBuf::from);
    let options = Options { programs: programs.as_deref(), settings, directory: None };
    Cluster::start(options).unwrap()
}

/// Lines, and how many of them are sound.
fn input() -> (String, u64) {
    let is_sound = |id: &u64| !id.is_multiple_of(BAD) && !id.is_multiple_of(MALFORMED);
    let line = |id: u64| match id {
        _ if id.is_multiple_of(MALFORMED) => format!("{{\"id\":{id}, no record\n"),
        _ if id.is_multiple_of(BAD) => format!("{{\"id\":{id},\"bad\":true}}\n"),
        _ => format!("{{\"id\":{id}}}\n"),
    };
    ((0..RECORDS).map(line).collect(), (0..RECORDS).filter(is_sound).count() as u64)
}

/// A load that is started again whenever it has ended too soon.
struct Persistent<'a> {
    world: &'a World,
    args: Vec<&'a str>,
    child: Child,
    starts: usize,
}

impl<'a> Persistent<'a> {
    fn start(world: &'a World, args: Vec<&'a str>) -> Self {
        let child = world.place.spawn(&args);
        Self { world, args, child, starts: 1 }
    }

    fn go_on(&mut self) {
        self.starts += 1;
        assert!(self.starts <= MOST_STARTS, "it ends again and again");
        self.child = self.world.place.spawn(&self.args);
    }

    /// Waits until so many more records were stored.
    fn wait_for(&mut self, more: u64) {
        let enough = (self.world.stored().0 + more).min(RECORDS / 2);
        wait_until("more is stored", || {
            if self.child.try_wait().unwrap().is_some() {
                self.go_on();
            }
            (self.world.stored().0 >= enough).then_some(())
        });
    }

    /// What the last of them says.
    fn end(mut self) -> Said {
        loop {
            let status = wait_until("it ends", || self.child.try_wait().unwrap());
            // 3: all is done, and some records are dead.
            if status.code() == Some(3) {
                return self.child.wait_with_output().unwrap().into();
            }
            self.go_on();
        }
    }
}

/// Loads while `disturb` is done to the server a few times, and checks what is said and stored then.
fn load_through(
    settings: &str,
    seed: u64,
    mut disturb: impl FnMut(&mut Cluster, &mut dyn FnMut()),
) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut cluster = start(settings);
    let store = cluster.url();
    let world = World::new(Spec {
        delay: Duration::from_millis(30),
        per_record_answers: true,
        ..Spec::default()
    });
    let (text, sound) = input();
    world.place.write("in.ndjson", text);
    let url = world.url();
    let more = ["--store", &store, "--group", "10", "--max", "4", "--json"];
    let mut load = Persistent::start(&world, world.args(&url, &more));
    // What was settled once is on the disk, and so is the load itself.
    world.place.wait_for_progress(&store);
    for _ in 0..3 {
        load.wait_for(rng.random_range(1..400));
        disturb(&mut cluster, &mut || load.wait_for(rng.random_range(1..400)));
    }
    let said = load.end();
    let dead = RECORDS - sound;
    let told = |json: &Value| {
        let count = |name: &str| json[name].as_u64();
        assert_eq!((count("completed"), count("dead")), (Some(sound), Some(dead)), "{json}");
    };
    told(&said.json());
    assert_eq!(world.service.counters().records, sound, "{}", said.stderr);
    let shown = world.place.json(&["batch", "show", "1", "--store", &store]);
    told(&shown);
    // Nothing is left to do, and nobody does it again.
    let before = world.service.counters().requests;
    let again = world.place.tidegate(&world.args(&url, &more));
    assert!(again.stderr.contains("was loaded before, as load 1"), "{}", again.stderr);
    assert_eq!(world.service.counters().requests, before);
}

#[test]
fn a_load_outlives_crashes_without_synchronous_commits() {
    let how = [Crash::Immediate, Crash::Kill];
    let mut times = 0;
    load_through("synchronous_commit = off\nwal_writer_delay = 10s", 17, |cluster, _| {
        times += 1;
        cluster.crash(how[times % 2]).unwrap();
        cluster.restart().unwrap();
    });
}

#[test]
fn a_load_outlives_failovers_to_a_standby_that_lags() {
    load_through("synchronous_commit = off", 18, |cluster, wait_for_more| {
        cluster.add_standby().unwrap();
        cluster.hold_standby().unwrap();
        // The standby does not know that these were sent.
        wait_for_more();
        cluster.fail_over(Crash::Kill).unwrap();
    });
}
