//! From a claim to groups: each lease with all that is needed to act on it.

use crate::{phases::Phases, snapshots::Snapshots};
use std::{collections::HashMap, sync::Arc};
use tidegate_core::{Batch, BatchId, Lease, claim::Claim, workload::Prepared};

/// Runs that are acted on one after the other, by one thread.
pub struct Group {
    /// The right to do so.
    pub lease: Lease,
    /// Their batch.
    pub batch: Arc<Batch>,
    /// The code, with the batch's snapshot.
    pub prepared: Arc<dyn Prepared>,
}

/// Splits a claim into groups, in the order of its leases.
pub fn group(claim: &mut Claim, snapshots: &mut Snapshots, phases: &Phases) -> Vec<Group> {
    snapshots.add(std::mem::take(&mut claim.snapshots));
    let batches: HashMap<BatchId, Arc<Batch>> =
        claim.batches.drain(..).map(|batch| (batch.id, Arc::new(batch))).collect();
    let groups = claim.leases.drain(..).filter_map(|lease| {
        let batch = batches.get(&lease.batch)?.clone();
        let prepared = snapshots.prepared(&batch, phases);
        Some(Group { lease, batch, prepared })
    });
    let groups = groups.collect();
    snapshots.trim();
    groups
}
