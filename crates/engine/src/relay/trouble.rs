//! Telling the store which sinks are in trouble: people who look at it should not have to read a relay's log.

use super::work::Relay;
use std::{convert::Infallible, time::Duration};
use tidegate_core::{
    limits::MAX_NAME_BYTES,
    outbox::{TroubleNote, TroubledSink},
};
use tokio::time::{Instant, sleep};

/// How often it is looked whether something has changed.
const LOOK: Duration = Duration::from_millis(250);

/// Notes sinks in trouble: when that changes, and as often as the relay says that it lives. Costs nothing while
/// all of them take messages.
pub(super) struct Notes<'r> {
    relay: &'r Relay,
    noted: Vec<TroubledSink>,
    at: Instant,
}

impl<'r> Notes<'r> {
    pub fn new(relay: &'r Relay) -> Self {
        Self { relay, noted: Vec::new(), at: Instant::now() }
    }

    /// Keeps the notes up to date for as long as it is asked.
    pub async fn keep(&mut self) -> Infallible {
        loop {
            sleep(LOOK).await;
            let now = troubled(self.relay);
            let beat = self.at.elapsed() >= self.relay.options.lease / 3;
            if self.is_news(&now) || (beat && !now.is_empty()) {
                self.note(now).await;
            }
        }
    }

    /// Whether other sinks are in trouble than those noted, or one of them began to be later.
    fn is_news(&self, now: &[TroubledSink]) -> bool {
        let same = |(now, noted): (&TroubledSink, &TroubledSink)| {
            now.sink == noted.sink && now.lasts >= noted.lasts
        };
        now.len() != self.noted.len() || !now.iter().zip(&self.noted).all(same)
    }

    /// Nobody knows how the sinks are once the relay has ended.
    pub async fn end(mut self) {
        if !self.noted.is_empty() {
            let _ = tokio::time::timeout(Duration::from_secs(1), self.note(Vec::new())).await;
        }
    }

    /// A store that fails is reported by those who need it.
    async fn note(&mut self, sinks: Vec<TroubledSink>) {
        let (relay, valid) = (self.relay.options.relay.clone(), self.relay.options.lease);
        let note = TroubleNote { relay, sinks: sinks.clone(), valid };
        match self.relay.store.note_sinks(note).await {
            Ok(()) => self.noted = sinks,
            Err(error) => tracing::debug!("the state of sinks was not noted: {error}"),
        }
        self.at = Instant::now();
    }
}

fn troubled(relay: &Relay) -> Vec<TroubledSink> {
    let troubles = relay.troubles(relay.options.stalled_after).into_iter();
    let noted = troubles.map(|(sink, trouble)| TroubledSink {
        sink,
        reason: short(&trouble.reason),
        lasts: trouble.lasts,
    });
    noted.collect()
}

/// No store has to take a whole page, or what is not text.
fn short(reason: &str) -> String {
    reason.chars().filter(|c| *c != '\0').take(MAX_NAME_BYTES).collect()
}
