//! What was attempted, what was committed, and what the sink saw: the three are compared at the end.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard},
};

/// Everything that happened to messages, each known by its number.
#[derive(Default)]
pub struct History(Mutex<Events>);

#[derive(Default)]
struct Events {
    /// Counts what happens, so that before and after can be told without a clock.
    moment: u64,
    attempted: Vec<Attempt>,
    seen: Vec<u64>,
}

struct Attempt {
    key: String,
    began: u64,
    fate: Fate,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The server did not say.
    Unknown,
    /// Acknowledged at this moment.
    Committed(u64),
    RolledBack,
}

/// What is wrong, by the numbers of messages.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Committed, and never seen.
    pub lost: BTreeSet<u64>,
    /// Seen, and never attempted, or rolled back.
    pub unexpected: BTreeSet<u64>,
    /// Committed before another of its key was begun, and seen after it.
    pub overtaken: BTreeSet<u64>,
    /// Seen more than once.
    pub repeated: BTreeSet<u64>,
}

impl History {
    /// A message is about to be published. Returns its number.
    pub fn attempt(&self, key: &str) -> u64 {
        let mut events = self.events();
        let began = events.now();
        events.attempted.push(Attempt { key: key.to_owned(), began, fate: Fate::Unknown });
        events.attempted.len() as u64 - 1
    }

    /// The server has acknowledged the commit.
    pub fn committed(&self, numbers: &[u64]) {
        let mut events = self.events();
        let now = events.now();
        events.decide(numbers, Fate::Committed(now));
    }

    /// The server went back in time and has only these: whatever else was acknowledged is not known any more.
    pub fn kept(&self, numbers: &BTreeSet<u64>) {
        let mut events = self.events();
        let now = events.now();
        for (number, attempt) in (0..).zip(&mut events.attempted) {
            attempt.fate = match (attempt.fate, numbers.contains(&number)) {
                (Fate::Committed(at), true) => Fate::Committed(at),
                (Fate::Unknown | Fate::RolledBack, true) => Fate::Committed(now),
                (fate, false) => {
                    if fate == Fate::RolledBack {
                        fate
                    } else {
                        Fate::Unknown
                    }
                }
            };
        }
    }

    pub fn rolled_back(&self, numbers: &[u64]) {
        self.events().decide(numbers, Fate::RolledBack);
    }

    pub fn saw(&self, number: u64) {
        self.events().seen.push(number);
    }

    /// How many messages were attempted so far: the next has this number.
    pub fn attempts(&self) -> u64 {
        self.events().attempted.len() as u64
    }

    pub fn commits(&self) -> usize {
        let is_committed = |it: &&Attempt| matches!(it.fate, Fate::Committed(_));
        self.events().attempted.iter().filter(is_committed).count()
    }

    pub fn rollbacks(&self) -> usize {
        self.events().attempted.iter().filter(|it| it.fate == Fate::RolledBack).count()
    }

    /// How many sightings there were of messages from this number on.
    pub fn seen_from(&self, number: u64) -> usize {
        self.events().seen.iter().filter(|seen| **seen >= number).count()
    }

    pub fn judge(&self) -> Findings {
        let events = self.events();
        let (first_seen, repeated) = events.sightings();
        let attempts = || (0..).zip(&events.attempted);
        let is_lost = |(number, attempt): &(u64, &Attempt)| {
            matches!(attempt.fate, Fate::Committed(_)) && !first_seen.contains(number)
        };
        let is_expected = |number: &u64| {
            let attempt = events.attempted.get(*number as usize);
            attempt.is_some_and(|attempt| attempt.fate != Fate::RolledBack)
        };
        Findings {
            lost: attempts().filter(is_lost).map(|(number, _)| number).collect(),
            unexpected: first_seen.iter().copied().filter(|it| !is_expected(it)).collect(),
            overtaken: events.overtaken(&first_seen),
            repeated,
        }
    }

    fn events(&self) -> MutexGuard<'_, Events> {
        self.0.lock().unwrap()
    }
}

impl Events {
    fn now(&mut self) -> u64 {
        self.moment += 1;
        self.moment
    }

    fn decide(&mut self, numbers: &[u64], fate: Fate) {
        numbers.iter().for_each(|number| self.attempted[*number as usize].fate = fate);
    }

    /// Each message once, in the order of the first time that it was seen; and those seen again.
    fn sightings(&self) -> (Vec<u64>, BTreeSet<u64>) {
        let (mut first, mut known, mut repeated) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        for number in &self.seen {
            match known.insert(*number) {
                true => first.push(*number),
                false => drop(repeated.insert(*number)),
            }
        }
        (first, repeated)
    }

    /// From the last sighting to the first: nothing that was seen later may have been committed before
    /// this one was begun.
    fn overtaken(&self, first_seen: &[u64]) -> BTreeSet<u64> {
        let mut earliest: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        let mut overtaken = BTreeSet::new();
        for number in first_seen.iter().rev() {
            let Some(attempt) = self.attempted.get(*number as usize) else { continue };
            let (committed, later) = earliest.entry(&attempt.key).or_insert((u64::MAX, 0));
            if *committed < attempt.began {
                overtaken.insert(*later);
            }
            if let Fate::Committed(at) = attempt.fate
                && at < *committed
            {
                (*committed, *later) = (at, *number);
            }
        }
        overtaken
    }
}

/// Two messages of one key, the second begun after the first was committed.
fn two_in_a_row() -> History {
    let history = History::default();
    for number in 0..2 {
        assert_eq!(history.attempt("k"), number);
        history.committed(&[number]);
    }
    history
}

#[test]
fn a_history_that_went_well_has_no_findings() {
    let history = two_in_a_row();
    let _unknown = history.attempt("k");
    [0, 1].iter().for_each(|number| history.saw(*number));
    assert_eq!(history.judge(), Findings::default());
}

#[test]
fn what_went_wrong_is_found() {
    let history = two_in_a_row();
    let (gone, undone) = (history.attempt("k"), history.attempt("k"));
    history.committed(&[gone]);
    history.rolled_back(&[undone]);
    [1, 0, 1, undone, 99].iter().for_each(|number| history.saw(*number));
    let expected = Findings {
        lost: [gone].into(),
        unexpected: [undone, 99].into(),
        overtaken: [0].into(),
        repeated: [1].into(),
    };
    assert_eq!(history.judge(), expected);
}
