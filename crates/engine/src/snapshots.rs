//! Snapshots that this process has already read and prepared, by hash.

use crate::phases::Phases;
use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};
use tidegate_core::{
    AnyWorkload, Batch, Run, RunError, Snapshot, SnapshotHash, Workloads, workload::Prepared,
};

/// Most snapshots kept: each may take megabytes in its prepared form.
const MAX_CACHED: usize = 32;

/// A bounded cache; the one used longest ago goes first.
pub struct Snapshots {
    workloads: Workloads,
    cached: HashMap<SnapshotHash, Entry>,
    clock: u64,
}

struct Entry {
    snapshot: Snapshot,
    /// By workload: two may share a snapshot, such as the empty one.
    prepared: HashMap<String, Arc<dyn Prepared>>,
    used: u64,
}

impl Snapshots {
    /// Nothing cached yet.
    pub fn new(workloads: Workloads) -> Self {
        Self { workloads, cached: HashMap::new(), clock: 0 }
    }

    /// The snapshots that need not be read again.
    pub fn known(&self) -> Vec<SnapshotHash> {
        self.cached.keys().copied().collect()
    }

    /// Takes what a claim brought.
    pub fn add(&mut self, snapshots: Vec<Snapshot>) {
        for snapshot in snapshots {
            self.clock += 1;
            let entry = Entry { snapshot, prepared: HashMap::new(), used: self.clock };
            self.cached.insert(entry.snapshot.hash(), entry);
        }
    }

    /// What carries out the runs of `batch`.
    pub fn prepared(&mut self, batch: &Batch, phases: &Phases) -> Arc<dyn Prepared> {
        self.clock += 1;
        let Some(entry) = self.cached.get_mut(&batch.snapshot) else {
            return Unusable::because(format!("snapshot {} is not stored", batch.snapshot));
        };
        entry.used = self.clock;
        if let Some(prepared) = entry.prepared.get(&batch.workload) {
            phases.snapshot_hits.add(1);
            return prepared.clone();
        }
        phases.snapshot_misses.add(1);
        let prepared = match self.workloads.get(&batch.workload) {
            Some(workload) => prepare(workload, &entry.snapshot).unwrap_or_else(Unusable::because),
            None => Unusable::because(format!("workload `{}` is unknown here", batch.workload)),
        };
        entry.prepared.insert(batch.workload.clone(), prepared.clone());
        prepared
    }

    /// Drops what exceeds the bound. Called when no claim is under way, so that what a claim was
    /// told to be known is still here when its answer comes.
    pub fn trim(&mut self) {
        while self.cached.len() > MAX_CACHED {
            let oldest = self.cached.iter().min_by_key(|(_, entry)| entry.used).map(|(h, _)| *h);
            oldest.map(|hash| self.cached.remove(&hash));
        }
    }
}

fn prepare(
    workload: Arc<dyn AnyWorkload>,
    snapshot: &Snapshot,
) -> Result<Arc<dyn Prepared>, String> {
    match catch_unwind(AssertUnwindSafe(|| workload.prepare(snapshot))) {
        Ok(prepared) => prepared.map_err(|invalid| invalid.to_string()),
        Err(_) => Err("the workload panicked while it read the snapshot".to_owned()),
    }
}

/// Stands in for a workload that cannot read the snapshot (another version submitted it): its runs
/// end dead with the reason, and can be retried once the worker is right.
struct Unusable(String);

impl Unusable {
    fn because(reason: String) -> Arc<dyn Prepared> {
        Arc::new(Self(reason))
    }
}

impl Prepared for Unusable {
    fn run(&self, _: &mut Run, _: &mut Vec<u8>) -> Result<(), RunError> {
        Err(RunError::permanent(self.0.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tidegate_core::{BatchId, InvalidSnapshot, Keep, RetryPolicy, Workload};

    struct Any;

    impl Workload for Any {
        type Prepared = ();
        type Output = ();

        fn name(&self) -> &str {
            "any"
        }

        fn prepare(&self, _: &Snapshot) -> Result<(), InvalidSnapshot> {
            Ok(())
        }

        fn run(&self, (): &(), _: &mut Run) -> Result<(), RunError> {
            Ok(())
        }
    }

    fn snapshot(number: usize) -> Snapshot {
        Snapshot::from_canonical(number.to_string())
    }

    fn batch(snapshot: SnapshotHash) -> Batch {
        let (workload, retry) = ("any".to_owned(), RetryPolicy::default());
        let (id, keep, timeout) = (BatchId(1), Keep::All, None);
        Batch { id, workload, snapshot, seed: 1, runs: 1, keep, retry, timeout }
    }

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let mut snapshots = Snapshots::new(Workloads::new().with(Any));
        let phases = Phases::default();
        let all: Vec<Snapshot> = (0..=MAX_CACHED).map(snapshot).collect();
        snapshots.add(all.clone());
        for snapshot in &all {
            snapshots.prepared(&batch(snapshot.hash()), &phases);
        }
        snapshots.prepared(&batch(all[0].hash()), &phases);
        snapshots.trim();
        let known = snapshots.known();
        assert_eq!(known.len(), MAX_CACHED);
        assert!(known.contains(&all[0].hash()) && !known.contains(&all[1].hash()));
        let report = phases.report(Duration::ZERO, 1);
        assert_eq!((report.snapshot_hits, report.snapshot_misses), (1, MAX_CACHED as u64 + 1));
    }
}
