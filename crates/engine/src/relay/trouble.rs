//! Telling the store which sinks take nothing: people who look at it should not have to read a relay's log.

use super::work::{Relay, RelayWatch};
use std::{convert::Infallible, time::Duration};
use tidegate_core::{limits::MAX_NAME_BYTES, outbox::TroubleNote};
use tokio::time::{Instant, sleep};

/// How often it is looked whether something has changed.
const LOOK: Duration = Duration::from_millis(250);

/// The sinks that take nothing, each with the reason.
type Troubled = Vec<(String, String)>;

/// Notes sinks that take nothing: when that changes, and as often as the relay says that it lives. Costs
/// nothing while all of them take messages.
pub(super) struct Notes<'r> {
    relay: &'r Relay,
    noted: Troubled,
    at: Instant,
}

impl<'r> Notes<'r> {
    pub fn new(relay: &'r Relay) -> Self {
        Self { relay, noted: Vec::new(), at: Instant::now() }
    }

    /// Keeps the notes up to date for as long as it is asked.
    pub async fn keep(&mut self) -> Infallible {
        let watch = self.relay.watch();
        loop {
            sleep(LOOK).await;
            let now = troubled(&watch.borrow());
            let changed = now.iter().map(name).ne(self.noted.iter().map(name));
            let beat = self.at.elapsed() >= self.relay.options.lease / 3;
            if changed || (beat && !now.is_empty()) {
                self.note(now).await;
            }
        }
    }

    /// Nobody knows how the sinks are once the relay has ended.
    pub async fn end(mut self) {
        if !self.noted.is_empty() {
            let _ = tokio::time::timeout(Duration::from_secs(1), self.note(Vec::new())).await;
        }
    }

    /// A store that fails is reported by those who need it.
    async fn note(&mut self, sinks: Troubled) {
        let (relay, valid) = (self.relay.options.relay.clone(), self.relay.options.lease);
        let note = TroubleNote { relay, sinks: sinks.clone(), valid };
        match self.relay.store.note_sinks(note).await {
            Ok(()) => self.noted = sinks,
            Err(error) => tracing::debug!("the state of sinks was not noted: {error}"),
        }
        self.at = Instant::now();
    }
}

fn name((name, _): &(String, String)) -> &str {
    name
}

fn troubled(watch: &RelayWatch) -> Troubled {
    let sinks = watch.sinks.iter();
    sinks.filter_map(|sink| Some((sink.name.clone(), short(sink.absence.as_ref()?)))).collect()
}

/// No store has to take a whole page, or what is not text.
fn short(reason: &str) -> String {
    reason.chars().filter(|c| *c != '\0').take(MAX_NAME_BYTES).collect()
}
