//! Destinations within a sink that hold up the others: what waits for them is set aside.
//!
//! A sink that is slow as a whole is read apart. That does not help here: order holds per key across all
//! topics of a sink, so its messages share a cursor. Left in memory, what waits for one destination
//! would fill the queue of its sink, and keep that cursor where it is.

use super::{flow::Flow, plan::Plan};
use crate::backoff::mix;
use std::time::Duration;
use tidegate_core::{Message, Position, outbox::Aside};

/// So much of what is due is kept for a destination that is shut, to see whether it answers again.
pub(super) const PROBES: usize = 256;
/// How long messages wait that are set aside …
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);
/// … at least so long that no more of them are looked at in a second.
const PER_SECOND: u64 = 1_000;

/// A destination that holds up others of its sink.
#[derive(Clone, Debug, Default)]
pub(super) struct Shut {
    /// Why it does, for people.
    pub reason: String,
    /// How long it has not been there; zero if it is only slow.
    pub absent_for: Duration,
    /// Groups that waited for it were called back.
    pub recalled: bool,
    /// How many messages were set aside because of it.
    pub set_aside: u64,
}

impl Shut {
    /// How long a message waits. Those that were set aside together are not due together.
    fn delay(&self, position: Position) -> Duration {
        let many = Duration::from_secs(self.set_aside / PER_SECOND);
        let delay = (self.absent_for / 2).max(many).clamp(SHORTEST, LONGEST);
        let jitter = (mix(position.0.unsigned_abs() ^ self.set_aside << 32) % 1_000) as u32;
        delay + delay * jitter / 1_000
    }
}

/// The destination of a message within its sink: what the sink says, or its topic if no request can have
/// several. Empty if the sink is one.
pub(super) fn place(plan: &Plan, mixes: &[bool], sink: usize, message: &Message) -> String {
    let said = plan.sinks[sink].sink.destination(&message.item());
    said.unwrap_or_else(|| if mixes[sink] { String::new() } else { message.topic.clone() })
}

impl Flow {
    /// What becomes of a message whose destination is shut. It is not at fault: that uses up no attempt.
    pub fn turn_away(
        &mut self,
        sink: usize,
        place: &str,
        position: Position,
        attempts: u32,
    ) -> Option<Aside> {
        let shut = self.shut[sink].get_mut(place)?;
        shut.set_aside += 1;
        Some(Aside::Retry { attempts, reason: shut.reason.clone(), delay: shut.delay(position) })
    }

    /// Sets aside what waits for a destination that is shut, but for the oldest `keep` messages and some
    /// that were set aside before.
    pub fn clear_place(&mut self, sink: usize, place: &str, keep: usize) {
        let (mut fresh, mut probes) = (keep, PROBES);
        let out = self.queues[sink].take_place(place, |queued| {
            let left = if queued.aside.is_some() { &mut probes } else { &mut fresh };
            let kept = *left > 0;
            *left = left.saturating_sub(1);
            kept
        });
        for line in out {
            let mut line = line.into_iter();
            let Some(first) = line.next() else { continue };
            let attempts = first.aside.unwrap_or(0);
            if !self.is_held(&first) {
                continue; // a key has one lane
            }
            if let Some(aside) = self.turn_away(sink, place, first.position(), attempts) {
                self.move_aside(first, aside);
            }
            line.for_each(|queued| self.wait_behind(queued));
        }
    }
}
