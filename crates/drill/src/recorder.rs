//! A sink that records every delivery: who sent it, when it arrived, whether and when it was answered.
//!
//! It takes one message per request, `POST /TOPIC`, with the sender's number in the header `drill-relay` and
//! `{"n": NUMBER}` as its body. What it answers, a function decides.

use crate::{
    history::{Moment, Sighting},
    service::Listener,
};
use axum::{
    Router,
    body::Bytes,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    routing::post,
};
use serde::{Deserialize, Serialize};
use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// The header with the sender's number.
pub const RELAY: &str = "drill-relay";

/// The body of a message.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Body {
    /// The number of the message.
    pub n: u32,
}

/// What the sink does with a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Treatment {
    /// Whether it takes the message; it answers 500 if not.
    pub accepted: bool,
    /// How long it takes to answer.
    pub delay: Duration,
}

type Decide = dyn Fn(&str) -> Treatment + Send + Sync;

/// A running sink. It stops when this is dropped.
pub struct Recorder {
    shared: Arc<Shared>,
    listener: Listener,
}

struct Shared {
    start: Instant,
    decide: Box<Decide>,
    sightings: Mutex<Vec<Sighting>>,
}

impl Recorder {
    /// Listens on a free loopback port. Moments are counted from `start`; `decide` says for a topic what becomes of a
    /// delivery.
    pub fn start(
        start: Instant,
        decide: impl Fn(&str) -> Treatment + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let sightings = Mutex::default();
        let shared = Arc::new(Shared { start, decide: Box::new(decide), sightings });
        let router = Router::new().route("/{topic}", post(deliver)).with_state(shared.clone());
        Ok(Self { shared, listener: Listener::start(router)? })
    }

    /// Its base, such as `http://127.0.0.1:8080`.
    pub fn url(&self) -> String {
        self.listener.url()
    }

    /// How many deliveries there were so far.
    pub fn count(&self) -> usize {
        self.shared.sightings().len()
    }

    /// Stops, and returns all that it saw.
    pub async fn stop(self) -> Vec<Sighting> {
        self.listener.stop().await;
        std::mem::take(&mut *self.shared.sightings())
    }
}

impl Shared {
    fn now(&self) -> Moment {
        self.start.elapsed().as_micros() as Moment
    }

    fn sightings(&self) -> MutexGuard<'_, Vec<Sighting>> {
        self.sightings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes an arrival and returns its place.
    fn arrive(&self, number: u32, relay: u32, accepted: bool) -> usize {
        let mut sightings = self.sightings();
        // Within the lock: the order of moments is the order of places.
        let arrived = self.now();
        sightings.push(Sighting { number, relay, arrived, answered: None, accepted });
        sightings.len() - 1
    }

    fn answer(&self, place: usize) {
        let now = self.now();
        if let Some(sighting) = self.sightings().get_mut(place) {
            sighting.answered = Some(now);
        }
    }
}

async fn deliver(
    State(shared): State<Arc<Shared>>,
    Path(topic): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let relay = headers.get(RELAY).and_then(|value| value.to_str().ok()?.parse().ok());
    let (Some(relay), Ok(Body { n })) = (relay, serde_json::from_slice(&body)) else {
        return StatusCode::BAD_REQUEST;
    };
    let Treatment { accepted, delay } = (shared.decide)(&topic);
    let place = shared.arrive(n, relay, accepted);
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    shared.answer(place);
    if accepted { StatusCode::NO_CONTENT } else { StatusCode::INTERNAL_SERVER_ERROR }
}
