//! A batch is closed once, and only when every run of it was settled before.

use super::{ensure, lost_work::given_up};
use crate::{End, Event, Plan};
use std::collections::BTreeMap;
use tidegate_core::settle::{Progress, Settled};

pub fn check(_: &Plan, end: &End) -> Result<(), String> {
    let mut open: BTreeMap<_, u64> = BTreeMap::new();
    for batch in &end.batches {
        // What is given up because its workers ended is settled by nobody.
        let given_up = given_up(batch).len() as u64;
        open.insert(batch.status.batch.id, batch.status.batch.runs - given_up);
    }
    for entry in end.history.surviving() {
        match entry.event {
            Event::Settled { parts, answer: Settled::Applied, .. } => {
                for part in parts {
                    let retried = part.failed.iter().filter(|f| f.delay.is_some()).count() as u64;
                    let settled = match &part.progress {
                        Progress::Range { settled, .. } => settled.len(),
                        Progress::Retries { settled } => settled.len() as u64,
                    };
                    let left = open.get_mut(&part.batch).ok_or("settled after it was closed")?;
                    *left -= settled - retried;
                }
            }
            Event::Finalized(closed) => {
                let left = open.remove(&closed.batch).ok_or("a batch was closed twice")?;
                ensure(left == 0, || format!("closed with {left} runs outstanding"))?;
            }
            _ => {}
        }
    }
    ensure(open.is_empty(), || format!("never closed: {open:?}"))
}
