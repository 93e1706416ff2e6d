//! Order per key.
//!
//! The surviving server's ids say in which order the messages of a key are. A message may arrive for the first time
//! only when all earlier ones of its key have been taken by the sink and answered. An earlier message that arrives
//! again after a later one is a duplicate, and judged as such. If nothing of its key comes after it, the key ends with
//! an older message: a relay that was stopped, and goes on with what it was about to send, can do that.

use super::{Findings, History, Moment, judge::Seen};
use std::collections::{HashMap, HashSet};

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
    pub(super) fn keys_with_older_end(&self) -> u64 {
        let key = |number: u32| self.attempts.get(number as usize).map(|attempt| attempt.key);
        let stored: HashMap<u32, u32> =
            self.stored.iter().filter_map(|number| Some((key(*number)?, *number))).collect();
        let is_stored: HashSet<u32> = self.stored.iter().copied().collect();
        let taken =
            self.sightings.iter().filter(|it| it.accepted && is_stored.contains(&it.number));
        let ends: HashMap<u32, u32> =
            taken.filter_map(|it| Some((key(it.number)?, it.number))).collect();
        let differs = |(key, last): &(&u32, &u32)| stored.get(key).is_some_and(|end| end != *last);
        ends.iter().filter(differs).count() as u64
    }
}
