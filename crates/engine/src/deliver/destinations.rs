//! The ways to the destinations of one sink: each has a pace, a size of groups and a breaker of its own.
//!
//! What the service says of its pace (a Retry-After, what is left, how much it wants) is about whoever
//! sends, and is heeded by all destinations of a connection; so are the budgets and the rate that are
//! declared. What is only found out, by rejections and time-outs, holds for one destination.

use super::{Channel, Manner, Sent, Trouble, TroubleKind, WallClock, channel::MOST_GROUPS};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tidegate_core::Sink;
use tidegate_pacer::{Options, OutOfRange, Pacer, Statistics, Time};

/// So many destinations are remembered beyond those that have something to do. One that comes back after it
/// was forgotten learns its pace again.
const REMEMBERED: usize = 256;
/// A sink of which a destination has answered within this time is there.
const LATELY: Duration = Duration::from_secs(10);

/// The ways to the destinations of one sink.
pub(crate) struct Destinations {
    sink: Arc<dyn Sink>,
    pacer: Pacer,
    operation: String,
    clock: WallClock,
    /// The most groups that may be on their way to all of them.
    pub most: usize,
    back_at: Arc<Mutex<Time>>,
    known: Mutex<Known>,
    /// Since when the sink could not be reached without a message, and why.
    doubt: Mutex<Option<(Time, String)>>,
}

#[derive(Default)]
struct Known {
    channels: HashMap<String, Arc<Channel>>,
    /// What was sent to those that were forgotten.
    before: Sent,
}

impl Destinations {
    pub fn new(
        sink: Arc<dyn Sink>,
        options: Options,
        clock: WallClock,
    ) -> Result<Self, OutOfRange> {
        let capabilities = sink.capabilities();
        let connections = u32::try_from(capabilities.connections.len()).unwrap_or(u32::MAX);
        let most = options.max.saturating_mul(connections).clamp(1, MOST_GROUPS) as usize;
        let pacer = Pacer::new(options, capabilities.connections)?;
        let (back_at, known, doubt) = Default::default();
        let operation = capabilities.operation;
        Ok(Self { sink, pacer, operation, clock, most, back_at, known, doubt })
    }

    /// The way to a destination.
    pub fn channel(&self, place: &str) -> Arc<Channel> {
        let mut known = self.known();
        if let Some(channel) = known.channels.get(place) {
            return channel.clone();
        }
        let class = self.class(place);
        let gate = match place {
            "" => self.pacer.gate(&class),
            _ => self.pacer.gate_to(&class),
        };
        let (sink, back_at) = (self.sink.clone(), self.back_at.clone());
        let most = sink.capabilities().max_group;
        let channel = Channel::beside(sink, most, gate, self.clock, Manner::Relay, back_at);
        let channel = Arc::new(channel);
        known.channels.insert(place.to_owned(), channel.clone());
        channel
    }

    /// What a destination is to the pacer.
    fn class(&self, place: &str) -> String {
        if place.is_empty() {
            self.operation.clone()
        } else {
            format!("{} {place}", self.operation)
        }
    }

    /// Forgets destinations that have had nothing to do for longest, if there are too many.
    pub fn forget(&self, is_used: impl Fn(&str) -> bool) {
        let mut known = self.known();
        let over = known.channels.len().saturating_sub(REMEMBERED);
        if over == 0 {
            return;
        }
        // Whoever still holds a channel sends on it.
        let is_idle = |channel: &Arc<Channel>| Arc::strong_count(channel) == 1;
        let idle = known.channels.iter().filter(|(place, it)| is_idle(it) && !is_used(place));
        let mut idle: Vec<(Time, String)> =
            idle.map(|(place, channel)| (channel.answered_at(), place.clone())).collect();
        idle.sort();
        for (_, place) in idle.into_iter().take(over) {
            if let Some(channel) = known.channels.remove(&place) {
                known.before = known.before + channel.meter.sent();
                self.pacer.forget(&self.class(&place));
            }
        }
    }

    /// All that are known, by name.
    pub fn all(&self) -> Vec<(String, Arc<Channel>)> {
        let known = self.known();
        known.channels.iter().map(|(place, channel)| (place.clone(), channel.clone())).collect()
    }

    pub fn count(&self) -> usize {
        self.known().channels.len()
    }

    /// Whether a destination that `counts` has answered a moment ago.
    pub fn answers(&self, counts: impl Fn(&str) -> bool) -> bool {
        let now = self.clock.time();
        let lately = |channel: &Channel| now.saturating_sub(channel.answered_at()) < LATELY;
        let known = self.known();
        known.channels.iter().any(|(place, channel)| counts(place) && lately(channel))
    }

    /// Why the sink is not there, or one of its destinations; of several, the one that is absent for longest.
    pub fn absence(&self) -> Option<String> {
        let absent = self.all().into_iter().filter_map(|(place, channel)| {
            let (reason, _) = channel.absence()?;
            let named = if place.is_empty() { reason } else { format!("{place}: {reason}") };
            Some((channel.absent_for()?, named))
        });
        absent.max().map(|(_, reason)| reason)
    }

    /// What is wrong with the sink, or with one of its destinations; of several things, the one that lasts longest.
    pub fn trouble(&self, stalled_after: Duration) -> Option<Trouble> {
        let of_places = self.all().into_iter().filter_map(|(place, channel)| {
            let trouble = channel.trouble(stalled_after)?;
            Some(match place.is_empty() {
                true => trouble,
                false => Trouble { reason: format!("{place}: {}", trouble.reason), ..trouble },
            })
        });
        let worst = of_places.max_by_key(|it| it.lasts);
        let Some((since, reason)) = self.doubted() else { return worst };
        let lasts = self.now().saturating_sub(since);
        // What became of messages says more, but it was like that before they came.
        Some(match worst {
            Some(worst) => Trouble { lasts: lasts.max(worst.lasts), ..worst },
            None => Trouble { kind: TroubleKind::Unreached, reason, lasts },
        })
    }

    pub fn now(&self) -> Time {
        self.clock.time()
    }

    /// The sink could not be reached since then, for this reason.
    pub fn doubt(&self, since: Time, reason: &str) {
        *self.doubt_of() = Some((since, reason.to_owned()));
    }

    /// The sink can be reached.
    pub fn trust(&self) {
        *self.doubt_of() = None;
    }

    /// Whether it could not be reached, and has answered nothing since.
    pub fn is_doubted(&self) -> bool {
        self.doubted().is_some()
    }

    fn doubted(&self) -> Option<(Time, String)> {
        let doubt = self.doubt_of().clone()?;
        let known = self.known();
        let answers = known.channels.values().any(|channel| channel.answered_at() > doubt.0);
        (!answers).then_some(doubt)
    }

    fn doubt_of(&self) -> MutexGuard<'_, Option<(Time, String)>> {
        self.doubt.lock().expect("nothing panics while it holds the lock")
    }

    /// Whether the sink as a whole said that nobody should ask it again.
    pub fn is_gone(&self) -> bool {
        self.known().channels.get("").is_some_and(|channel| channel.is_gone())
    }

    /// What was sent to all of them.
    pub fn sent(&self) -> Sent {
        let known = self.known();
        known.channels.values().fold(known.before, |sum, channel| sum + channel.meter.sent())
    }

    /// Where the pace of each destination stands, on each connection.
    pub fn statistics(&self) -> Vec<Statistics> {
        let mut all = self.all();
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        let now = self.clock.time();
        all.iter().flat_map(|(_, channel)| channel.gate.statistics(now)).collect()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().expect("nothing panics while it holds the lock")
    }
}

#[cfg(test)]
mod tests;
