//! Nobody gets a run that another lease still covers by the store's clock.

use super::ensure;
use crate::{End, Event, Plan, history::indexes};
use std::{collections::BTreeMap, time::Duration};
use tidegate_core::{
    BatchId, Fence,
    settle::{Progress, Settled},
};

pub fn check(_: &Plan, end: &End) -> Result<(), String> {
    let mut until: BTreeMap<(BatchId, u64), (Fence, Duration)> = BTreeMap::new();
    for entry in end.history.surviving() {
        match entry.event {
            Event::Claimed { lease, expires } => {
                for run in indexes(&lease) {
                    let before = until.insert(run, (lease.fence, expires));
                    ensure(before.is_none_or(|(_, end)| end <= entry.at), || {
                        format!("{run:?} was leased again before its lease expired")
                    })?;
                }
            }
            Event::Renewed { leases, lost, expires } => {
                for lease in leases.iter().filter(|lease| !lost.contains(&lease.fence)) {
                    for run in indexes(lease) {
                        let held = until.get_mut(&run).filter(|(fence, _)| *fence == lease.fence);
                        held.into_iter().for_each(|held| held.1 = expires);
                    }
                }
            }
            Event::GivenBack(leases) => {
                let given = |fence: &Fence| leases.iter().any(|lease| lease.fence == *fence);
                until.retain(|_, (fence, _)| !given(fence));
            }
            Event::Settled { parts, answer: Settled::Applied, .. } => {
                for part in parts {
                    let settled = match part.progress {
                        Progress::Range { settled, .. } => (settled.lo..settled.hi).collect(),
                        Progress::Retries { settled } => settled,
                    };
                    until.retain(|(batch, index), _| {
                        *batch != part.batch || !settled.contains(index)
                    });
                }
            }
            _ => {}
        }
    }
    Ok(())
}
