//! What a worker made of a lease: the part of a settlement, built step by step.
//!
//! Run `i` yields the number `i`, so that results and aggregates of any set of runs are known.

use std::{collections::BTreeMap, time::Duration};
use tidegate_core::{
    Aggregates, BatchId, Items, Lease, Page, Range,
    page::PageBuilder,
    run::Emitted,
    settle::{AccumulatorId, Failed, Part, Progress, Total},
};

/// The runs of a lease that were acted on: all done, but for those that failed.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    lease: Lease,
    from: u64,
    to: u64,
    failed: BTreeMap<u64, Option<Duration>>,
    page: Option<Option<Page>>,
}

impl Work {
    /// All runs of a lease.
    pub(crate) fn all(lease: &Lease) -> Self {
        Self::some(lease, 0, lease.items.len())
    }

    /// The runs from the `from`th to before the `to`th.
    pub(crate) fn some(lease: &Lease, from: u64, to: u64) -> Self {
        Self { lease: lease.clone(), from, to, failed: BTreeMap::new(), page: None }
    }

    /// Run `index` failed and is due again after `delay`.
    pub(crate) fn retry(mut self, index: u64, delay: Duration) -> Self {
        self.failed.insert(index, Some(delay));
        self
    }

    /// Run `index` failed for the last time.
    pub(crate) fn dead(mut self, index: u64) -> Self {
        self.failed.insert(index, None);
        self
    }

    /// Stores this page, or none, instead of the results of the runs that are done.
    pub(crate) fn page(mut self, page: Option<Page>) -> Self {
        self.page = Some(page);
        self
    }

    pub(crate) fn part(self) -> Part {
        let failed = self.failures();
        let progress = Progress::of(&self.lease.items, self.from, self.to);
        let mut part =
            Part { batch: self.lease.batch, fence: self.lease.fence, progress, page: None, failed };
        part.page = self.page.unwrap_or_else(|| page(&successes(&part)));
        part
    }

    fn failures(&self) -> Vec<Failed> {
        let items = (self.from..self.to).map(|n| self.lease.items.nth(n));
        let failed = items.filter_map(|item| {
            let delay = *self.failed.get(&item.index)?;
            let attempts = item.attempts + 1;
            let reason = reason(item.index, attempts);
            Some(Failed { index: item.index, attempts, reason, delay })
        });
        failed.collect()
    }
}

/// Why run `index` failed, in letters that stores must not lose.
pub(crate) fn reason(index: u64, attempts: u32) -> String {
    format!("run {index} said “don't” \\ \"no\", attempt №{attempts}\n\t%s $1 ?1 🎲")
}

/// A range lease without its first `settled` runs, or a retry lease without them.
pub(crate) fn rest(lease: &Lease, settled: u64) -> Lease {
    let items = match &lease.items {
        Items::Range(range) => Items::Range(Range::new(range.lo + settled, range.hi)),
        Items::Retries(items) => Items::Retries(items[settled as usize..].to_vec()),
    };
    Lease { items, ..lease.clone() }
}

/// The range of a range lease.
pub(crate) fn range(lease: &Lease) -> Range {
    match &lease.items {
        Items::Range(range) => *range,
        Items::Retries(retries) => panic!("these are retries, not a range: {retries:?}"),
    }
}

/// The runs and attempts of a retry lease.
pub(crate) fn retries(lease: &Lease) -> Vec<(u64, u32)> {
    match &lease.items {
        Items::Retries(items) => items.iter().map(|item| (item.index, item.attempts)).collect(),
        Items::Range(range) => panic!("this is a range, not retries: {range}"),
    }
}

/// The page of these runs.
pub(crate) fn page(indexes: &[u64]) -> Option<Page> {
    let mut page = PageBuilder::default();
    indexes.iter().for_each(|index| page.push(*index, index.to_string().as_bytes()));
    page.build()
}

/// The aggregates of these runs.
pub(crate) fn sums(indexes: impl IntoIterator<Item = u64>) -> Aggregates {
    let mut aggregates = Aggregates::default();
    for index in indexes {
        let parity = if index % 2 == 0 { "even" } else { "odd" };
        let mut emitted = Emitted::default();
        emitted.number("index", index as f64);
        emitted.category("parity", parity);
        aggregates.add(index, index.to_string().as_bytes(), &emitted);
    }
    aggregates
}

/// The runs of a part that are done.
pub(crate) fn successes(part: &Part) -> Vec<u64> {
    let settled: Vec<u64> = match &part.progress {
        Progress::Range { settled, .. } => (settled.lo..settled.hi).collect(),
        Progress::Retries { settled } => settled.clone(),
    };
    let failed = |index: &u64| part.failed.iter().any(|failed| failed.index == *index);
    settled.into_iter().filter(|index| !failed(index)).collect()
}

/// The aggregates of these parts, as those of a worker that has settled nothing before.
pub(crate) fn totals(parts: &[Part], accumulator: AccumulatorId) -> Vec<Total> {
    let mut by_batch: BTreeMap<BatchId, Aggregates> = BTreeMap::new();
    for part in parts {
        by_batch.entry(part.batch).or_default().merge(&sums(successes(part)));
    }
    let total = |(batch, sum): (_, Aggregates)| Total {
        batch,
        accumulator,
        before: Total::NONE,
        sequence: 1,
        body: sum.encode(),
    };
    by_batch.into_iter().map(total).collect()
}
