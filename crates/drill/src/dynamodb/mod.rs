//! A proxy on loopback in front of a DynamoDB-compatible server that checks no signatures. It counts requests and
//! capacity units, and does what such servers never do: throttle, hand back items of a batch, let indexes lag, describe
//! tables as they were, answer late, cut connections.
//!
//! Without [`Faults`] it only counts. All chance comes from one seed; with concurrent requests, which of them meets
//! a fault depends on the order in which they arrive.
//!
//! Index lag is played with replicas: each index of a table has a table of its own on the same server, into which
//! changes are copied when they are due, and reads of the index go there. So every filter, order, limit, page and
//! segment of a read is the server's own. Changes that do not pass the proxy, PartiQL statements and TTL deletions
//! are not followed while indexes lag.
//!
//! ```no_run
//! # async fn example() -> std::io::Result<()> {
//! use std::time::Duration;
//! use tidegate_drill::dynamodb::{Faults, Proxy};
//!
//! let proxy = Proxy::start("http://127.0.0.1:8000", 7)?;
//! // … point the client to `proxy.url()`, make the table …
//! proxy.set_faults(Faults {
//!     unprocessed: 0.4,
//!     throttled: [("UpdateItem", 0.5)].into(),
//!     index_lag: Duration::from_millis(500),
//!     ..Faults::default()
//! });
//! // … publish, relay …
//! proxy.set_faults(Faults::default());
//! println!("{:?}", proxy.counters().total());
//! # Ok(())
//! # }
//! ```

mod backlog;
mod call;
mod capacity;
mod chance;
mod counters;
mod exchange;
mod refusal;
mod replicas;
mod tables;
mod unprocessed;
mod upstream;

#[cfg(test)]
mod tests;

pub use chance::Faults;
pub use counters::{Count, Counters};

use crate::service::Listener;
use chance::Chance;
use exchange::exchange;
use hyper::service::service_fn;
use replicas::Replicas;
use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tables::Stale;
use tokio::sync::RwLock;
use upstream::Upstream;

/// A running proxy. It stops when this is dropped.
pub struct Proxy {
    shared: Arc<Shared>,
    listener: Listener,
}

impl Proxy {
    /// Listens on a free loopback port, in front of the server at `upstream`, such as `http://127.0.0.1:8000`. Runs on
    /// the current tokio runtime. Fails if there is none, or if the address is not one.
    pub fn start(upstream: &str, seed: u64) -> io::Result<Self> {
        let shared = Arc::new(Shared::new(Upstream::new(upstream)?, seed));
        let served = Arc::clone(&shared);
        let service = service_fn(move |request| exchange(Arc::clone(&served), request));
        Ok(Self { shared, listener: Listener::serve(service)? })
    }

    /// Its base, such as `http://127.0.0.1:8080`.
    pub fn url(&self) -> String {
        self.listener.url()
    }

    /// From now on these faults, and no others.
    pub fn set_faults(&self, faults: Faults) {
        self.shared.chance().set(faults);
    }

    /// What it saw up to now.
    pub fn counters(&self) -> Counters {
        self.shared.counters().clone()
    }

    /// Sets all counters to zero.
    pub fn reset_counters(&self) {
        *self.shared.counters() = Counters::default();
    }

    /// Indexes show all that was written before, whatever the lag. Fails if the server does.
    pub async fn catch_up(&self) -> io::Result<()> {
        let mut replicas = self.shared.replicas.write().await;
        replicas.catch_up(&self.shared.upstream).await.map_err(io::Error::other)
    }

    /// Stops at once, as a crash would, and removes the tables that played the lag.
    pub async fn stop(self) {
        self.listener.stop().await;
        self.shared.replicas.write().await.clear(&self.shared.upstream).await;
    }
}

/// What all requests share.
struct Shared {
    upstream: Upstream,
    chance: Mutex<Chance>,
    counters: Mutex<Counters>,
    /// Requests that pass while nothing lags hold it for reading, so that a copy of a table misses none of them.
    replicas: RwLock<Replicas>,
    stale: Mutex<Stale>,
}

impl Shared {
    fn new(upstream: Upstream, seed: u64) -> Self {
        let (chance, counters) = (Mutex::new(Chance::new(seed)), Mutex::default());
        let stale = Mutex::default();
        Self { upstream, chance, counters, replicas: RwLock::default(), stale }
    }

    fn chance(&self) -> MutexGuard<'_, Chance> {
        self.chance.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn counters(&self) -> MutexGuard<'_, Counters> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stale(&self) -> MutexGuard<'_, Stale> {
        self.stale.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
