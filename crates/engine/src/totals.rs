//! What this worker has settled of each batch, added up.

use crate::{act::Outcome, backoff::mix};
use std::{
    collections::BTreeMap,
    hash::{BuildHasher, RandomState},
};
use tidegate_core::{
    Aggregates, BatchId, WorkerId,
    settle::{AccumulatorId, Total},
};

/// Batches remembered at the same time; a forgotten one gets a new accumulator when it comes back.
const MAX_BATCHES: usize = 64;

/// The aggregates that this worker's rows hold, batch by batch. They change only after a settlement
/// was applied, so that memory and store never differ.
pub struct Totals {
    /// Differs between workers, also between those of one name.
    worker: u64,
    made: u64,
    batches: BTreeMap<BatchId, Sum>,
}

struct Sum {
    accumulator: AccumulatorId,
    sequence: i64,
    aggregates: Aggregates,
}

/// Totals as they will be once a settlement is applied.
pub struct NewTotals(Vec<(BatchId, Aggregates)>);

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
        let rows = sums.iter().map(|(batch, aggregates)| self.row(*batch, aggregates)).collect();
        (NewTotals(sums.into_iter().collect()), rows)
    }

    fn sum(&mut self, batch: BatchId) -> &Sum {
        self.batches.entry(batch).or_insert_with(|| {
            self.made += 1;
            Sum {
                accumulator: accumulator(self.worker, self.made),
                sequence: 0,
                aggregates: Aggregates::default(),
            }
        })
    }

    fn row(&self, batch: BatchId, aggregates: &Aggregates) -> Total {
        let sum = &self.batches[&batch];
        Total {
            batch,
            accumulator: sum.accumulator,
            sequence: sum.sequence + 1,
            body: aggregates.encode(),
        }
    }

    /// Takes over what was applied.
    pub fn commit(&mut self, new: NewTotals) {
        for (batch, aggregates) in new.0 {
            if let Some(sum) = self.batches.get_mut(&batch) {
                sum.sequence += 1;
                sum.aggregates = aggregates;
            }
        }
        while self.batches.len() > MAX_BATCHES {
            self.batches.pop_first();
        }
    }
}

/// Different for every worker and every count.
fn accumulator(worker: u64, made: u64) -> AccumulatorId {
    AccumulatorId(mix(worker ^ mix(made)) as i64)
}
