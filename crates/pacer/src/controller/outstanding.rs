//! Requests without an answer, in the order in which they started.
//!
//! How busy the service was when a request started is what its answer tells about. So each request
//! keeps that number, and it is corrected when one of those that were counted turns out to be lost.

use crate::Time;
use std::{collections::BTreeMap, time::Duration};

/// Requests without an answer: those that may still get one, and those that are taken as lost.
#[derive(Clone, Debug, Default)]
pub(super) struct Outstanding {
    next: u64,
    live: BTreeMap<u64, Sent>,
    lost: BTreeMap<u64, Sent>,
    /// Those that were given up may still be worked on: until then they count.
    ghosts: BTreeMap<u64, Time>,
}

/// What is known of a request from its start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub at: Time,
    pub seen: Seen,
    /// The level changes by falls: a refusal answers only for the level under which it started.
    pub generation: u32,
    pub role: Role,
}

/// How busy the service was when a request started, as far as this pacer knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// In flight, itself included, without those that are taken as lost.
    pub in_flight: u32,
    /// Sent within the last second, itself included.
    pub per_second: u32,
}

/// Why a request was let through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Role {
    /// There was room.
    #[default]
    Usual,
    /// It tests whether one more in flight is accepted.
    ProbesFlight,
    /// It tests whether one more within a second is accepted.
    ProbesRate,
    /// It asks whether the service accepts anything at all.
    Asks,
}

impl Outstanding {
    /// A request starts. Returns its number.
    pub fn start(&mut self, sent: Sent) -> u64 {
        let id = self.next;
        self.next += 1;
        self.live.insert(id, sent);
        id
    }

    /// A request ended. Returns what is known of it, and whether it had been taken as lost.
    pub fn end(&mut self, id: u64) -> Option<(Sent, bool)> {
        let live = self.live.remove(&id).map(|sent| (sent, false));
        live.or_else(|| self.lost.remove(&id).map(|sent| (sent, true)))
    }

    /// Takes the oldest one as lost: it was in the service for a round trip, and those that started later had
    /// one less beside them than it seemed.
    pub fn lose_oldest(&mut self, round_trip: Duration) -> Option<(u64, Sent)> {
        let (id, sent) = self.live.pop_first()?;
        for younger in self.live.values_mut().filter(|other| other.at >= sent.at + round_trip) {
            younger.seen.in_flight = younger.seen.in_flight.saturating_sub(1).max(1);
        }
        self.lost.insert(id, sent);
        Some((id, sent))
    }

    /// The number that the next request will have.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The oldest of those that may still be answered.
    pub fn oldest(&self) -> Option<(u64, Time)> {
        self.live.first_key_value().map(|(id, sent)| (*id, sent.at))
    }

    /// How many may still be answered.
    pub fn live(&self) -> u32 {
        self.live.len() as u32
    }

    /// How many are taken as lost.
    pub fn lost(&self) -> u32 {
        self.lost.len() as u32
    }

    /// One was given up without an answer: it may still be worked on until then.
    pub fn given_up(&mut self, id: u64, until: Time) {
        self.ghosts.insert(id, until);
    }

    /// Those that were given up before this one are not worked on anymore.
    pub fn answered(&mut self, id: u64, now: Time) {
        if !self.ghosts.is_empty() {
            self.ghosts.retain(|ghost, until| *ghost >= id && *until > now);
        }
    }

    /// Until when one is worked on that was given up.
    pub fn next_ghost(&self, now: Time) -> Option<Time> {
        self.ghosts.values().copied().filter(|until| *until > now).min()
    }

    /// How many are taken as lost, or were given up, of those that started after this one.
    pub fn missing_after(&self, id: u64, now: Time) -> u32 {
        let ghosts = self.ghosts.range(id..).filter(|(_, until)| **until > now);
        (self.lost.range(id..).count() + ghosts.count()) as u32
    }

    /// Whether more than so many that started before this one have no answer yet.
    pub fn more_before(&self, id: u64, most: u32) -> bool {
        self.live.range(..id).nth(most as usize).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(in_flight: u32) -> Sent {
        let seen = Seen { in_flight, per_second: in_flight };
        Sent { at: Time::ZERO, seen, generation: 0, role: Role::Usual }
    }

    #[test]
    fn the_lost_were_not_beside_those_that_followed() {
        let mut out = Outstanding::default();
        let ids: Vec<u64> = (1..=3).map(|n| out.start(sent(n))).collect();
        assert_eq!(out.lose_oldest(Duration::ZERO).map(|(id, _)| id), Some(ids[0]));
        assert_eq!((out.live(), out.lost()), (2, 1));
        assert_eq!(
            out.end(ids[2]).map(|(sent, lost)| (sent.seen.in_flight, lost)),
            Some((2, false))
        );
        assert_eq!(
            out.end(ids[0]).map(|(sent, lost)| (sent.seen.in_flight, lost)),
            Some((1, true))
        );
        assert!(out.end(ids[0]).is_none());
    }

    #[test]
    fn those_before_a_request_are_counted() {
        let mut out = Outstanding::default();
        let ids: Vec<u64> = (1..=4).map(|n| out.start(sent(n))).collect();
        assert!(out.more_before(ids[3], 2) && !out.more_before(ids[3], 3));
        assert!(!out.more_before(ids[0], 0));
        assert_eq!(out.oldest(), Some((ids[0], Time::ZERO)));
    }
}
