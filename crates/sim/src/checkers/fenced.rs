//! Only the newest lease on a run settles it, and a late worker changes nothing.

use super::ensure;
use crate::{End, Event, Plan, history::indexes};
use std::collections::BTreeMap;
use tidegate_core::{
    BatchId, Fence,
    settle::{Part, Progress, Settled},
};

pub fn check(_: &Plan, end: &End) -> Result<(), String> {
    let mut newest: BTreeMap<(BatchId, u64), Fence> = BTreeMap::new();
    for entry in end.history.surviving() {
        match entry.event {
            Event::Claimed { lease, .. } => {
                for run in indexes(&lease) {
                    let before = newest.insert(run, lease.fence);
                    ensure(before < Some(lease.fence), || format!("{run:?}: fences must grow"))?;
                }
            }
            Event::Settled { parts, answer: Settled::Applied, .. } => {
                for part in &parts {
                    for index in settled(part) {
                        let holder = newest.get(&(part.batch, index));
                        ensure(holder == Some(&part.fence), || {
                            format!(
                                "run {index} was settled under {:?}, not {holder:?}",
                                part.fence
                            )
                        })?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn settled(part: &Part) -> Vec<u64> {
    match &part.progress {
        Progress::Range { settled, .. } => (settled.lo..settled.hi).collect(),
        Progress::Retries { settled } => settled.clone(),
    }
}
