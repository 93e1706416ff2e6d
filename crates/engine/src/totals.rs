//! What this worker has settled of each batch, added up.

use crate::{act::Outcome, backoff::mix};
use std::{
    collections::BTreeMap,
    hash::{BuildHasher, RandomState},
};
use tidegate_core::{
    Aggregates, BatchId, WorkerId,
    settle::{AccumulatorId, Progress, Total},
    stamp::{number, stamp},
};

/// Batches remembered at the same time; a forgotten one gets a new accumulator when it comes back.
const MAX_BATCHES: usize = 64;

/// The aggregates that this worker's rows hold, batch by batch. They change only after a settlement
/// was applied. A row says which settlement wrote it last, and the next one names that: if memory and
/// store differ all the same, because the store went back in time, the store refuses it.
pub struct Totals {
    /// Differs between workers, also between those of one name.
    worker: u64,
    made: u64,
    batches: BTreeMap<BatchId, Sum>,
}

struct Sum {
    accumulator: AccumulatorId,
    /// Of the last settlement that was applied.
    sequence: i64,
    aggregates: Aggregates,
}

/// Totals as they will be once a settlement is applied.
pub struct NewTotals(Vec<(BatchId, i64, Aggregates)>);

impl Totals {
    /// Nothing settled yet.
    pub fn new(worker: &WorkerId) -> Self {
        let worker = RandomState::new().hash_one(worker);
        Self { worker, made: 0, batches: BTreeMap::new() }
    }

    /// The totals with these outcomes added, and the rows that say so.
    pub fn with(&mut self, outcomes: &[Outcome]) -> (NewTotals, Vec<Total>) {
        let mut sums: BTreeMap<BatchId, Aggregates> = BTreeMap::new();
        for outcome in outcomes {
            let before = &self.sum(outcome.batch).aggregates;
            let sum = sums.entry(outcome.batch).or_insert_with(|| before.clone());
            sum.merge(&outcome.aggregates);
        }
        let noise = self.noise(outcomes);
        let rows = sums.iter().map(|(batch, aggregates)| self.row(*batch, aggregates, noise));
        let rows: Vec<Total> = rows.collect();
        let new = sums.into_iter().zip(&rows);
        let new = new.map(|((batch, aggregates), row)| (batch, row.sequence, aggregates));
        (NewTotals(new.collect()), rows)
    }

    /// The same for a settlement that is sent again; another one if some of its outcomes were dropped.
    fn noise(&self, outcomes: &[Outcome]) -> u64 {
        outcomes.iter().fold(self.worker, |noise, outcome| {
            let last = match &outcome.progress {
                Progress::Range { settled, .. } => settled.hi,
                Progress::Retries { settled } => settled.last().copied().unwrap_or_default(),
            };
            mix(noise ^ mix(outcome.fence.0 as u64) ^ last)
        })
    }

    fn sum(&mut self, batch: BatchId) -> &Sum {
        self.batches.entry(batch).or_insert_with(|| {
            self.made += 1;
            Sum {
                accumulator: accumulator(self.worker, self.made),
                sequence: Total::NONE,
                aggregates: Aggregates::default(),
            }
        })
    }

    fn row(&self, batch: BatchId, aggregates: &Aggregates, noise: u64) -> Total {
        let sum = &self.batches[&batch];
        Total {
            batch,
            accumulator: sum.accumulator,
            before: sum.sequence,
            sequence: stamp(number(sum.sequence) + 1, noise),
            body: aggregates.encode(),
        }
    }

    /// Takes over what was applied.
    pub fn commit(&mut self, new: NewTotals) {
        for (batch, sequence, aggregates) in new.0 {
            if let Some(sum) = self.batches.get_mut(&batch) {
                sum.sequence = sequence;
                sum.aggregates = aggregates;
            }
        }
        while self.batches.len() > MAX_BATCHES {
            self.batches.pop_first();
        }
    }
}

impl Totals {
    /// Begins new rows for these batches. What the store has of the old ones stays, and is the sum of
    /// what it knows to be settled.
    pub fn forget(&mut self, batches: &[BatchId]) {
        batches.iter().for_each(|batch| drop(self.batches.remove(batch)));
    }
}

/// Different for every worker and every count.
fn accumulator(worker: u64, made: u64) -> AccumulatorId {
    AccumulatorId(mix(worker ^ mix(made)) as i64)
}
