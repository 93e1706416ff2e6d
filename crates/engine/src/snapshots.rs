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
