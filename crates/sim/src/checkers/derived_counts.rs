//! Whoever looks sees numbers that add up, and completed runs that only grow.

use super::ensure;
use crate::{End, Event, Plan};
use std::collections::BTreeMap;

pub fn check(_: &Plan, end: &End) -> Result<(), String> {
    let mut completed = BTreeMap::new();
    for entry in end.history.surviving() {
        let Event::Seen(seen) = entry.event else { continue };
        for status in seen {
            let p = status.progress;
            let sum = p.completed + p.dead + p.retrying + p.leased + p.untouched;
            ensure(sum == status.batch.runs, || format!("{p:?} of {} runs", status.batch.runs))?;
            let before = completed.insert(status.batch.id, p.completed).unwrap_or(0);
            ensure(before <= p.completed, || format!("{before} completed, later {p:?}"))?;
        }
    }
    Ok(())
}
