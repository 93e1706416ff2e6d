//! Progress, results, failures and aggregates, all or nothing.

use super::{Content, ExceptionRow, Row, Tries};
use crate::{
    BatchId, ExceptionState, Fence,
    settle::{Failed, Part, Progress, Settled, Settlement, Total},
};
use std::time::Duration;

impl Content {
    pub(super) fn settle(&mut self, settlement: Settlement, now: Duration) -> Settled {
        if self.was_applied(&settlement.totals) {
            return Settled::Applied;
        }
        let strange = |total: &&Total| self.stored(total) != total.before;
        let forgotten = settlement.totals.iter().filter(strange).map(|total| total.batch);
        let forgotten: Vec<BatchId> = forgotten.collect();
        if !forgotten.is_empty() {
            return Settled::Forgotten(forgotten);
        }
        let lost = |part: &&Part| !self.row(part.batch).is_some_and(|row| row.holds(part));
        let late: Vec<Fence> = settlement.parts.iter().filter(lost).map(|p| p.fence).collect();
        if !late.is_empty() {
            return Settled::Late(late);
        }
        for part in settlement.parts {
            let row = self.batches.get_mut(&part.batch).expect("its lease is held");
            row.apply(part, now, settlement.lease);
        }
        for total in settlement.totals {
            let row = self.batches.get_mut(&total.batch).expect("totals belong to parts");
            row.parts.insert(total.accumulator, (total.sequence, total.body));
        }
        Settled::Applied
    }

    fn row(&self, batch: BatchId) -> Option<&Row> {
        self.batches.get(&batch)
    }

    fn was_applied(&self, totals: &[Total]) -> bool {
        !totals.is_empty() && totals.iter().all(|total| self.stored(total) == total.sequence)
    }

    /// The sequence of the row that a total overwrites.
    fn stored(&self, total: &Total) -> i64 {
        let row = self.row(total.batch).and_then(|row| row.parts.get(&total.accumulator));
        row.map_or(Total::NONE, |(sequence, _)| *sequence)
    }
}

impl Row {
    fn holds(&self, part: &Part) -> bool {
        match &part.progress {
            Progress::Range { settled, end } => self
                .leases
                .get(end)
                .is_some_and(|lease| lease.fence == part.fence && lease.lo == settled.lo),
            Progress::Retries { settled } => settled.iter().all(|index| {
                self.exceptions.get(index).is_some_and(|held| held.is_held(part.fence))
            }),
        }
    }

    fn apply(&mut self, part: Part, now: Duration, lease: Duration) {
        match &part.progress {
            Progress::Range { settled, end } if settled.hi == *end => {
                self.leases.remove(end);
            }
            Progress::Range { settled, end } => {
                let held = self.leases.get_mut(end).expect("it was checked to be held");
                held.lo = settled.hi;
                held.expires = now + lease;
            }
            Progress::Retries { settled } => {
                settled.iter().for_each(|index| drop(self.exceptions.remove(index)));
                let left = self.exceptions.values_mut().filter(|held| held.is_held(part.fence));
                left.for_each(|held| held.due = now + lease);
            }
        }
        let failed = part.failed.into_iter().map(|failed| (failed.index, failed.row(now)));
        self.exceptions.extend(failed);
        if let Some(page) = part.page {
            self.pages.insert(page.range.lo, page);
        }
    }
}

impl Failed {
    fn row(self, now: Duration) -> ExceptionRow {
        ExceptionRow {
            attempts: self.attempts,
            state: match self.delay {
                Some(_) => ExceptionState::Retry,
                None => ExceptionState::Dead,
            },
            reason: self.reason,
            due: now + self.delay.unwrap_or_default(),
            fence: None,
            worker: String::new(),
            tries: Tries::default(),
        }
    }
}
