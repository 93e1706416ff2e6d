//! How long the healthy topic waited while no server fault was on.

use super::{Fate, History, Moment, Stall, judge::Seen};

impl History {
    /// Only messages that the surviving server has, and that were delivered: others are judged elsewhere.
    pub(super) fn stall(&self, seen: &[Seen], stored: &[bool]) -> Stall {
        let mut events: Vec<(Moment, i32)> = Vec::new();
        let (mut message, mut message_at) = (0, 0);
        let all = self.attempts.iter().zip(seen).zip(stored);
        for ((attempt, seen), _) in all.filter(|((attempt, _), stored)| attempt.healthy && **stored)
        {
            let (Fate::Committed(committed), Some(accepted)) = (attempt.fate, seen.accepted) else {
                continue;
            };
            // It may be delivered before its publisher has the acknowledgment.
            let committed = committed.min(accepted);
            events.push((committed, 1));
            events.push((accepted, -1));
            let waited = self.longest_without_fault(committed, accepted);
            if waited > message {
                (message, message_at) = (waited, committed);
            }
        }
        Stall {
            topic_ms: self.topic_stall(events) / 1000,
            message_ms: message / 1000,
            message_at_ms: message_at / 1000,
        }
    }

    /// Walks over commits (+1) and deliveries (−1).
    fn topic_stall(&self, mut events: Vec<(Moment, i32)>) -> Moment {
        events.sort_unstable_by_key(|(at, change)| (*at, -change));
        let (mut waiting, mut since, mut longest) = (0, 0, 0);
        for (at, change) in events {
            if waiting > 0 && change < 0 {
                longest = longest.max(self.longest_without_fault(since, at));
            }
            if waiting == 0 || change < 0 {
                since = at;
            }
            waiting += change;
        }
        longest
    }

    /// The longest part of a time in which no server fault was on.
    fn longest_without_fault(&self, from: Moment, to: Moment) -> Moment {
        let (mut since, mut longest) = (from, 0);
        for fault in self.server_faults.iter().filter(|it| it.from < to && it.to > from) {
            longest = longest.max(fault.from.saturating_sub(since));
            since = fault.to;
        }
        longest.max(to.saturating_sub(since))
    }
}
