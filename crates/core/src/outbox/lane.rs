//! Lanes: the unit of lease and of order.

use super::{Epoch, HeldKey, Position, Route, Topics};
use crate::{Fence, WorkerId};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use twox_hash::XxHash3_64;

/// How many lanes an outbox has: many relays can share them evenly, and one relay reads all of them
/// in one statement.
pub const LANES: u16 = 64;

/// A hash bucket of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane(pub u16);

impl Lane {
    /// All lanes.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..LANES).map(Self)
    }
}

/// What a key is known by among what was set aside. Two keys with one hash wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(pub i64);

impl KeyHash {
    /// The hash of a key.
    pub fn of(key: &str) -> Self {
        Self(XxHash3_64::oneshot(key.as_bytes()) as i64)
    }
}

/// The right to a lane for as long as its relay lives, by the store's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneLease {
    /// Which lane.
    pub lane: Lane,
    /// Proves the right.
    pub fence: Fence,
}

/// A relay says that it lives, and asks for its share.
#[derive(Clone, Debug)]
pub struct Share {
    /// Who asks.
    pub relay: WorkerId,
    /// The epoch in which it got what it holds. In another one it has lost all of that.
    pub epoch: Epoch,
    /// What it holds already. Whatever else it was given is free again.
    pub held: Vec<LaneLease>,
    /// Where messages go now: what was set aside for want of a route finds one here.
    pub routes: Vec<Route>,
    /// How long it counts as living from now, and has its lanes.
    pub lease: Duration,
}

/// What a relay got.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    /// The present epoch of the store. If it is not the one that the relay knew, all that it held is lost, and it
    /// may have gained some of that anew.
    pub epoch: Epoch,
    /// The number of the relay's last settlement that the store has; 0 if it has none. A relay that holds no other
    /// lanes than those it has just gained goes on from here.
    pub settled: u64,
    /// Lanes that it did not hold before.
    pub gained: Vec<Gained>,
    /// How many lanes are leased to it of which the store does not know enough yet. It gets them if it asks again, at
    /// once.
    pub pending: usize,
    /// Lanes that it holds no longer.
    pub lost: Vec<Lane>,
    /// How many lanes it has above its share. It should give back so many when they are at rest.
    pub surplus: usize,
    /// How many relays live.
    pub relays: usize,
}

/// Lanes that a relay does without.
#[derive(Clone, Debug)]
pub struct GiveBack {
    /// Who gives them back.
    pub relay: WorkerId,
    /// Which lanes.
    pub lanes: Vec<LaneLease>,
    /// Whether the relay ends.
    pub ends: bool,
}

/// A lane that was just leased, and how far it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gained {
    /// Which lane, and the right to it.
    pub lease: LaneLease,
    /// All messages up to here are done or set aside, but for those of sinks that lag.
    pub cursor: i64,
    /// Sinks that have their own cursor.
    pub lags: Vec<Lag>,
    /// What was done under other routes, if a sink lagged when they changed.
    pub before: Option<Before>,
    /// Keys that wait for what was set aside.
    pub held: Vec<HeldKey>,
    /// Messages behind one of the cursors that were set aside already.
    pub aside: Vec<Position>,
}

/// A sink that is behind its lane. Its topics are read apart from the rest until it has caught up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lag {
    /// Which sink.
    pub sink: String,
    /// What went to it when it fell behind.
    pub topics: Topics,
    /// All messages on these topics up to here are done or set aside.
    pub cursor: i64,
}

/// How far a lane was under routes that hold no longer. The sinks of the present ones start where the last
/// sink of the former was, and leave out what was done then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    /// All messages up to here were done or set aside, but for those of sinks that lagged.
    pub cursor: i64,
    /// Sinks that lagged.
    pub lags: Vec<Lag>,
    /// The same under still earlier routes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Box<Before>>,
}

/// Routes seldom change more often than this while the same sink lags.
const MOST_BEFORE: usize = 8;

impl Before {
    /// How far a lane was, and what was done before that. What was done too many changes of routes ago is
    /// forgotten, and may be repeated.
    pub fn new(cursor: i64, lags: Vec<Lag>, mut before: Option<Self>) -> Self {
        let mut oldest = before.as_mut();
        for _ in 2..MOST_BEFORE {
            oldest = oldest.and_then(|it| it.before.as_deref_mut());
        }
        if let Some(oldest) = oldest {
            oldest.before = None;
        }
        Self { cursor, lags, before: before.map(Box::new) }
    }

    /// Whether a message was still to be read.
    pub fn left(&self, topic: &str, position: Position) -> bool {
        is_left(self.cursor, &self.lags, self.before.as_deref(), topic, position)
    }

    /// Beyond this, everything was still to be read.
    pub fn reach(&self) -> i64 {
        let earlier = self.before.as_ref().map(|before| before.reach());
        let lags = self.lags.iter().map(|lag| lag.cursor);
        lags.chain(earlier).fold(self.cursor, i64::max)
    }
}

/// Whether a message is still to be read from a lane that is so far.
pub(crate) fn is_left(
    cursor: i64,
    lags: &[Lag],
    before: Option<&Before>,
    topic: &str,
    position: Position,
) -> bool {
    let lagging = lags.iter().filter(|lag| lag.topics.contains(topic)).map(|lag| lag.cursor);
    position.0 > lagging.min().unwrap_or(cursor) && before.is_none_or(|it| it.left(topic, position))
}

#[cfg(test)]
mod tests {
    use super::{super::Pattern, *};
    use crate::outbox::Choice;

    fn lag(topic: &str, cursor: i64) -> Lag {
        let takes = Pattern(topic.to_owned());
        let topics = Topics(vec![Choice { takes, unless: Vec::new() }]);
        Lag { sink: "any".to_owned(), topics, cursor }
    }

    #[test]
    fn a_message_is_left_if_it_was_under_all_routes() {
        let first = Before { cursor: 20, lags: vec![lag("a", 5), lag("b", 30)], before: None };
        let left = |before: &Before, topic: &str| {
            (1..50).find(|id| before.left(topic, Position(*id))).unwrap_or(0)
        };
        assert_eq!(["a", "b", "c"].map(|topic| left(&first, topic)), [6, 31, 21]);
        assert_eq!(first.reach(), 30);
        let lags = vec![lag("*", 8)];
        let second = Before { cursor: 20, lags, before: Some(Box::new(first)) };
        assert_eq!(["a", "b", "c"].map(|topic| left(&second, topic)), [9, 31, 21]);
        assert_eq!(second.reach(), 30);
    }

    #[test]
    fn what_was_done_long_ago_is_forgotten() {
        let depth = |before: &Before| {
            std::iter::successors(Some(before), |it| it.before.as_deref()).count()
        };
        let next = |before| Some(Before::new(1, vec![lag("a", 0)], before));
        let many = (0..50).fold(None, |before, _| next(before)).unwrap();
        assert_eq!(depth(&many), MOST_BEFORE);
    }
}
