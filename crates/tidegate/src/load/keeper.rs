//! Keeping the pace in the store: for people, for the next process, and for others at work.

use super::Load;
use crate::OpenStore;
use serde::{Deserialize, Serialize};
use std::{convert::Infallible, time::Duration};
use tidegate_core::{
    BatchId, StoreError, WorkerId,
    pace::{NotedPace, PaceNote, PaceQuery},
};
use tidegate_engine::deliver::Sent;
use tidegate_pacer::{Remembered, Statistics};
use tokio::time::sleep;

/// How often the pace is written down.
const EVERY: Duration = Duration::from_secs(1);
/// How often in that time it is looked whether something must be written at once …
const LOOKS: u32 = 20;
/// … and each so many times, what others at work have written.
const LOOKS_AT_OTHERS: u32 = 5;
/// Who wrote more recently than this is at work.
const AT_WORK: Duration = Duration::from_secs(3);
/// The notes that are looked at: more processes on one sink are not expected.
const LOOKED_AT: usize = 50;

/// What is known about the pace of a load.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pace {
    /// Where each connection stands, with the last decisions.
    pub statistics: Vec<Statistics>,
    /// What the next process begins with.
    pub remembered: Vec<Remembered>,
    /// What was sent by this process.
    pub sent: Sent,
    /// Whether the process goes on.
    pub running: bool,
    /// Why nothing was taken for long, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled: Option<Stalled>,
}

/// Nothing was taken for long, and no attempt was used up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stalled {
    /// For how long.
    pub seconds: u64,
    /// What the sink said last.
    pub reason: String,
}

/// Nothing was taken for so long: people should see it.
const LONG: Duration = Duration::from_secs(60);

pub(super) struct Keeper<'a> {
    load: &'a Load,
    store: &'a OpenStore,
    batch: BatchId,
    worker: WorkerId,
}

impl<'a> Keeper<'a> {
    pub fn new(load: &'a Load, store: &'a OpenStore, batch: BatchId, worker: WorkerId) -> Self {
        Self { load, store, batch, worker }
    }

    /// Others learn of this process, and it of them, before it sends anything.
    pub async fn begin(&self) {
        let _ = self.note(true).await;
        self.share().await;
    }

    /// Writes the pace down, and shares the sink with others at work, until nobody asks any more. It
    /// is only kept to be helpful: a store that does not answer is the worker's to report.
    pub async fn keep(&self) -> Infallible {
        loop {
            let throttled_until = self.load.gate.throttled_until();
            let _ = self.note(true).await;
            // A Retry-After must outlive this process: it is written down as soon as it is known.
            for look in 0..LOOKS {
                if look % LOOKS_AT_OTHERS == 0 {
                    self.share().await;
                }
                sleep(EVERY / LOOKS).await;
                if self.load.gate.throttled_until() > throttled_until {
                    break;
                }
            }
        }
    }

    /// Writes down how it ended.
    pub async fn note_last(&self) {
        let _ = tokio::time::timeout(EVERY, self.note(false)).await;
    }

    async fn note(&self, running: bool) -> Result<(), StoreError> {
        let now = self.load.clock.time();
        let pace = Pace {
            statistics: self.load.gate.statistics(now),
            remembered: self.load.gate.remembered(now),
            sent: self.load.meter().sent(),
            stalled: self
                .load
                .stall()
                .filter(|(_, time)| *time >= LONG)
                .map(|(reason, time)| Stalled { seconds: time.as_secs(), reason }),
            running,
        };
        let body = serde_json::to_string(&pace).unwrap_or_default();
        let (sink, worker) = (self.load.to.clone(), self.worker.clone());
        self.store.note_pace(PaceNote { sink, batch: self.batch, worker, body }).await
    }

    /// Takes an equal part of what the sink allows to all processes together, and leaves it alone if
    /// it wants that of another. If the store does not say who they are, they are still the same.
    async fn share(&self) {
        let Ok(noted) = noted(self.load, self.store, Some(AT_WORK)).await else { return };
        let (gate, now) = (&self.load.gate, self.load.clock.time());
        let mut at_work = 1;
        for (note, pace) in noted.iter().filter(|(noted, _)| noted.note.worker != self.worker) {
            at_work += u32::from(pace.running);
            for known in &pace.remembered {
                let left = known.retry_after.saturating_sub(note.age);
                gate.hold(&known.connection, now + left);
            }
        }
        gate.share(at_work, now);
    }
}

/// Begins where the last processes ended. What cannot be read is learned again.
pub(super) async fn recall(load: &Load, store: &OpenStore) {
    let noted = noted(load, store, None).await.unwrap_or_default();
    let now = load.clock.time();
    let remembered = noted.into_iter().flat_map(|(noted, pace)| {
        // The other process had another clock; the store's tells how long ago that was.
        let at = now.saturating_sub(noted.age);
        pace.remembered.into_iter().map(move |known| Remembered { at, ..known })
    });
    load.gate.recall(&remembered.collect::<Vec<_>>(), now);
}

/// What is written about the pace of this sink, the newest first.
async fn noted(
    load: &Load,
    store: &OpenStore,
    within: Option<Duration>,
) -> Result<Vec<(NotedPace, Pace)>, StoreError> {
    let query = PaceQuery { sink: Some(load.to.clone()), batch: None, within, limit: LOOKED_AT };
    let noted = store.paces(query).await?.into_iter();
    Ok(noted.filter_map(|noted| decoded(&noted).map(|pace| (noted, pace))).collect())
}

/// What a note says; nothing if another version wrote it.
pub(super) fn decoded(noted: &NotedPace) -> Option<Pace> {
    serde_json::from_str(&noted.note.body).ok()
}

#[cfg(test)]
mod tests;
