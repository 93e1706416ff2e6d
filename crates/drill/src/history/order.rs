//! Order per key.
//!
//! The surviving server's ids say in which order the messages of a key are. A message may arrive for the first time
//! only when all earlier ones of its key have been taken by the sink and answered. An earlier message that arrives
//! again after a later one is a duplicate, and judged as such.

use super::{Findings, History, Moment, judge::Seen};
use std::collections::HashMap;

impl History {
    pub(super) fn judge_order(&self, seen: &[Seen], findings: &mut Findings) {
        // By key, when all messages so far were answered, and the one that was answered last.
        let mut done: HashMap<u32, (Moment, u32)> = HashMap::new();
        for number in &self.stored {
            let at = *number as usize;
            let (Some(attempt), Some(seen)) = (self.attempts.get(at), seen.get(at)) else {
                continue;
            };
            let (until, last) = done.entry(attempt.key).or_default();
            if let Some(arrived) = seen.arrived
                && arrived < *until
            {
                findings.order_violations += 1;
                let (key, last, until) = (attempt.key, *last, *until);
                findings.example(|| {
                    let (arrived, until) = (arrived as f64 / 1e6, until as f64 / 1e6);
                    format!(
                        "message {number} of key {key} arrived at {arrived:.3} s, before message {last} was \
                         answered at {until:.3} s"
                    )
                });
            }
            // One that was never taken is lost, and breaks no order.
            if let Some(answered) = seen.answered.or(seen.accepted)
                && answered > *until
            {
                (*until, *last) = (answered, *number);
            }
        }
    }
}
