//! Keeping the pace in the store: for people, for the next process, and for others at work.

use super::Load;
use crate::OpenStore;
use serde::{Deserialize, Serialize};
use std::{convert::Infallible, time::Duration};
use tidegate_core::{
    BatchId, WorkerId,
    pace::{PaceNote, PaceQuery},
};
use tidegate_engine::deliver::Sent;
use tidegate_pacer::{Remembered, Statistics};
use tokio::time::sleep;

/// How often the pace is written down.
const EVERY: Duration = Duration::from_secs(1);
/// How often in that time it is looked whether something must be written at once.
const LOOKS: u32 = 20;
/// Who wrote more recently than this is at work.
const AT_WORK: Duration = Duration::from_secs(5);
/// The notes that are looked at: more processes on one sink are not expected.
const LOOKED_AT: usize = 200;

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
}

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

    /// Begins where the last process ended. What cannot be read is learned again.
    pub async fn recall(&self) {
        let query = self.query(None, 1);
        let newest = self.store.paces(query).await.unwrap_or_default().pop();
        let Some(newest) = newest else { return };
        let Ok(pace) = serde_json::from_str::<Pace>(&newest.note.body) else { return };
        let now = self.load.clock.time();
        // The other process had another clock; the store's tells how long ago that was.
        let at = now.saturating_sub(newest.age);
        let remembered: Vec<Remembered> =
            pace.remembered.into_iter().map(|known| Remembered { at, ..known }).collect();
        self.load.gate.recall(&remembered, now);
    }

    /// Writes the pace down, and shares the sink with others at work, until nobody asks any more. It
    /// is only kept to be helpful: a store that does not answer is the worker's to report.
    pub async fn keep(&self) -> Infallible {
        loop {
            let throttled_until = self.load.gate.throttled_until();
            let _ = self.note(true).await;
            self.share().await;
            // A Retry-After must outlive this process: it is written down as soon as it is known.
            for _ in 0..LOOKS {
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

    async fn note(&self, running: bool) -> Result<(), tidegate_core::StoreError> {
        let now = self.load.clock.time();
        let pace = Pace {
            statistics: self.load.gate.statistics(now),
            remembered: self.load.gate.remembered(now),
            sent: self.load.meter().sent(),
            running,
        };
        let body = serde_json::to_string(&pace).unwrap_or_default();
        let (sink, worker) = (self.load.to.clone(), self.worker.clone());
        self.store.note_pace(PaceNote { sink, batch: self.batch, worker, body }).await
    }

    fn query(&self, within: Option<Duration>, limit: usize) -> PaceQuery {
        PaceQuery { sink: Some(self.load.to.clone()), batch: None, within, limit }
    }

    /// Takes an equal part of what the sink allows to all processes together.
    async fn share(&self) {
        let Ok(noted) = self.store.paces(self.query(Some(AT_WORK), LOOKED_AT)).await else {
            return;
        };
        let at_work = noted.iter().filter(|noted| {
            serde_json::from_str(&noted.note.body).is_ok_and(|pace: Pace| pace.running)
        });
        self.load.gate.share(at_work.count().max(1) as u32);
    }
}
