//! The two stores, and the workers that use both alike.

use super::{
    operation::{Act, Claiming, Fate, Operation},
    side::Side,
};
use crate::{
    harness::{AT_ONCE, Bench, LATER, ask, new_batch, snapshot},
    work::{Work, rest, successes, sums},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    time::Duration,
};
use tidegate_core::{
    Aggregates, BatchId, Lease, Snapshot, StoreError, WorkerId,
    claim::{ClaimRequest, Length, Lengths},
    settle::{AccumulatorId, Part, Settled, Settlement, Total},
    submit::NewBatch,
};

type Step = Result<(), String>;

pub(super) struct World {
    reference: Side,
    store: Side,
    workload: String,
    batches: Vec<BatchId>,
    /// Leases and how many of their runs are settled; also those that are lost or used up.
    leases: Vec<(Lease, u64)>,
    workers: [BTreeMap<BatchId, Accumulator>; 2],
    accumulators: i64,
    applied: Vec<Settlement>,
}

/// What one worker has settled of one batch.
#[derive(Clone)]
struct Accumulator {
    id: AccumulatorId,
    sequence: i64,
    sum: Aggregates,
}

/// Counts back from the newest.
fn pick<T>(list: &[T], back: usize) -> Option<&T> {
    list.len().checked_sub(1).map(|newest| &list[newest - back % list.len()])
}

fn length(lasts: bool) -> Duration {
    if lasts { LATER } else { AT_ONCE }
}

fn frozen(other: bool) -> Snapshot {
    snapshot(if other { "2" } else { "1" })
}

pub(crate) fn same<T: PartialEq + Debug>(
    what: &str,
    reference: Result<T, StoreError>,
    store: Result<T, StoreError>,
) -> Result<T, String> {
    let reference = reference.map_err(|error| format!("the memory store fails: {error}"))?;
    let store = store.map_err(|error| format!("the store fails: {error}"))?;
    if reference == store {
        return Ok(store);
    }
    Err(format!("{what}\n  expected: {reference:?}\n  found:    {store:?}"))
}

/// Calls both sides with the same arguments; the answers must be equal.
macro_rules! both {
    ($world:ident.$method:ident($($argument:expr),*)) => {{
        let reference = $world.reference.$method($($argument),*).await;
        let store = $world.store.$method($($argument),*).await;
        same(stringify!($method), reference, store)
    }};
}

pub(crate) use both;

impl World {
    pub(super) fn new(reference: Bench, store: Bench, workload: String) -> Self {
        Self {
            reference: Side::new(reference),
            store: Side::new(store),
            workload,
            batches: Vec::new(),
            leases: Vec::new(),
            workers: Default::default(),
            accumulators: 0,
            applied: Vec::new(),
        }
    }

    pub(super) async fn step(&mut self, operation: &Operation) -> Step {
        use Operation::*;
        match operation {
            Submit { runs, other_snapshot } => self.submit(*runs, *other_snapshot).await?,
            Claim(claiming) => self.claim(claiming).await?,
            Settle { worker, acts, lasts } => self.settle(*worker, acts, *lasts).await?,
            SendAgain { settlement } => self.send_again(*settlement).await?,
            Renew { leases, lasts } => self.renew(leases, *lasts).await?,
            GiveBack { leases } => self.give_back(leases).await?,
            FinalizeAll => self.finalize(self.batches.clone()).await?,
            FinalizeOne { batch } => {
                self.finalize(pick(&self.batches, *batch).copied().into_iter().collect()).await?;
            }
            Cancel { batch } => self.cancel(*batch).await?,
            Retry { batch, from } => self.retry(*batch, *from).await?,
        }
        for batch in self.batches.clone() {
            both!(self.observe(batch))?;
        }
        Ok(())
    }

    async fn submit(&mut self, runs: u64, other_snapshot: bool) -> Step {
        let workload = self.workload.clone();
        let batch = NewBatch { workload, snapshot: frozen(other_snapshot), ..new_batch(runs) };
        self.batches.push(both!(self.submit(batch.clone()))?.id);
        Ok(())
    }

    async fn claim(&mut self, claiming: &Claiming) -> Step {
        let batch = |back| pick(&self.batches, back).copied();
        let known = claiming.known_length.and_then(|(back, most)| {
            batch(back).map(|batch| (batch, Length { most, least: claiming.least }))
        });
        let unknown = Length { most: claiming.most, least: claiming.least };
        let request = ClaimRequest {
            // Sequences share a store: what one has left leased is not another one's.
            worker: WorkerId(format!("the worker of {}", self.workload)),
            lengths: Lengths { unknown, known: known.into_iter().collect() },
            workloads: vec![self.workload.clone()],
            only: claiming.only.and_then(batch),
            lease: length(claiming.lasts),
            known: claiming.knows_snapshot.then(|| frozen(false).hash()).into_iter().collect(),
            ..ask(claiming.slots, 1)
        };
        let answer = both!(self.claim(request.clone()))?;
        self.leases.extend(answer.leases.into_iter().map(|lease| (lease, 0)));
        Ok(())
    }

    async fn settle(&mut self, worker: usize, acts: &[Act], lasts: bool) -> Step {
        let works = self.works(acts);
        if works.is_empty() {
            return Ok(());
        }
        let parts: Vec<Part> = works.iter().map(|(_, _, work)| work.clone().part()).collect();
        let accumulators = self.accumulate(worker, &parts);
        let totals = accumulators.iter().map(|(batch, row)| row.total(*batch)).collect();
        let settlement = Settlement { parts, totals, lease: length(lasts) };
        if both!(self.settle(settlement.clone()))? == Settled::Applied {
            works.iter().for_each(|(place, settled, _)| self.leases[*place].1 = *settled);
            self.workers[worker].extend(accumulators);
            self.applied.push(settlement);
        }
        Ok(())
    }

    /// For each lease, at most once: its place, how many of its runs are settled then, and how. A
    /// lease that is used up is settled once more from its start, which is late.
    fn works(&self, acts: &[Act]) -> Vec<(usize, u64, Work)> {
        let places: Vec<usize> = (0..self.leases.len()).collect();
        let mut seen = BTreeSet::new();
        let mut works = Vec::new();
        for act in acts {
            let Some(place) = pick(&places, act.lease).filter(|place| seen.insert(**place)) else {
                continue;
            };
            let (lease, settled) = &self.leases[*place];
            let from = if *settled == lease.items.len() { 0 } else { *settled };
            let to = lease.items.len().min(from.saturating_add(act.runs));
            works.push((*place, to, act.work(lease, from, to)));
        }
        works
    }

    /// The worker's aggregates if these parts are applied, by batch.
    fn accumulate(&mut self, worker: usize, parts: &[Part]) -> BTreeMap<BatchId, Accumulator> {
        let mut rows = BTreeMap::new();
        for part in parts {
            let row = rows.entry(part.batch).or_insert_with(|| {
                let row = self.workers[worker].get(&part.batch).cloned();
                let mut row = row.unwrap_or_else(|| {
                    self.accumulators += 1;
                    let id = AccumulatorId(self.accumulators);
                    Accumulator { id, sequence: 0, sum: Aggregates::default() }
                });
                row.sequence += 1;
                row
            });
            row.sum.merge(&sums(successes(part)));
        }
        rows
    }

    async fn send_again(&mut self, back: usize) -> Step {
        let Some(settlement) = pick(&self.applied, back).cloned() else { return Ok(()) };
        both!(self.settle(settlement.clone())).map(drop)
    }

    /// What is left of these leases, each once.
    fn left(&self, backs: &[usize]) -> Vec<Lease> {
        let picked = backs.iter().filter_map(|back| pick(&self.leases, *back));
        let mut seen = BTreeSet::new();
        let picked = picked.filter(|(lease, _)| seen.insert(lease.fence));
        let left = picked.map(|(lease, settled)| rest(lease, *settled));
        left.filter(|lease| !lease.items.is_empty()).collect()
    }

    async fn renew(&mut self, backs: &[usize], lasts: bool) -> Step {
        let leases = self.left(backs);
        both!(self.renew(leases.clone(), length(lasts))).map(drop)
    }

    /// A lease that was given back is not used any more.
    async fn give_back(&mut self, backs: &[usize]) -> Step {
        let leases = self.left(backs);
        self.leases.retain(|(lease, _)| leases.iter().all(|given| given.fence != lease.fence));
        both!(self.give_back(leases.clone()))
    }

    async fn finalize(&mut self, batches: Vec<BatchId>) -> Step {
        both!(self.finalize(batches.clone())).map(drop)
    }

    async fn cancel(&mut self, back: usize) -> Step {
        let Some(batch) = pick(&self.batches, back).copied() else { return Ok(()) };
        both!(self.cancel(batch)).map(drop)
    }

    async fn retry(&mut self, back: usize, from: u64) -> Step {
        let Some(batch) = pick(&self.batches, back).copied() else { return Ok(()) };
        both!(self.retry(batch, from)).map(drop)
    }
}

impl Accumulator {
    fn total(&self, batch: BatchId) -> Total {
        let body = self.sum.encode();
        let before = self.sequence - 1;
        Total { batch, accumulator: self.id, before, sequence: self.sequence, body }
    }
}

impl Act {
    fn work(&self, lease: &Lease, from: u64, to: u64) -> Work {
        let items = (from..to).map(|n| lease.items.nth(n).index);
        let fates = items.zip(self.fates.iter().cycle());
        fates.fold(Work::some(lease, from, to), |work, (index, fate)| match fate {
            Fate::Done => work,
            Fate::RetryAtOnce => work.retry(index, AT_ONCE),
            Fate::RetryLater => work.retry(index, LATER),
            Fate::Dead => work.dead(index),
        })
    }
}
