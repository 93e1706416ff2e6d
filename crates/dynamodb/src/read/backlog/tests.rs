//! A backlog is read from a model of the indexes: whatever is published, wanted and left, in whatever order.

use super::{
    super::{
        finder::{Fates, Finder, Look},
        merge::merge,
        pages::Page,
    },
    *,
};
use crate::item::Found;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeSet, HashMap, HashSet};
use tidegate_core::{
    NewMessage,
    outbox::{Lane, by_state::Row},
};

const SHARDS: u32 = 3;
const PAGE: u32 = 20;
const SECOND: i64 = 10_000_000;

/// What is outstanding, and a relay that reads it.
struct World {
    luck: ChaCha8Rng,
    rows: Vec<Seen>,
    finder: Finder,
    start: Instant,
    now: i64,
    /// Messages that the relay has: of each key, in the order in which it got them.
    taken: HashMap<(String, String), Vec<Ticks>>,
    known: HashSet<Row>,
    unwanted: BTreeSet<String>,
    requests: usize,
    /// The lanes that the relay knows of.
    lanes: HashSet<Lane>,
    /// What a look gives of this lane is not taken.
    dropped: Option<Lane>,
}

/// Keys are spread over so many lanes.
const LANES: u16 = 4;

impl World {
    fn new(seed: u64) -> Self {
        Self {
            luck: ChaCha8Rng::seed_from_u64(seed),
            rows: Vec::new(),
            finder: Finder::default(),
            start: Instant::now(),
            now: SECOND,
            taken: HashMap::new(),
            known: HashSet::new(),
            unwanted: BTreeSet::new(),
            requests: 0,
            lanes: (0..LANES).map(Lane).collect(),
            dropped: None,
        }
    }

    fn time(&self) -> (Ticks, Instant) {
        let since = Duration::from_nanos(self.now.unsigned_abs() * 100);
        (Ticks(self.now), self.start + since)
    }

    /// A key's messages are in its shard, and some of them in the one that Brighter would choose.
    fn publish(&mut self, topic: &str, count: usize) {
        for _ in 0..count {
            self.now += 1 + self.luck.random_range(0..1_000);
            let key = self.luck.random_range(0..12_u32);
            let is_negative = key % SHARDS > 0 && self.luck.random_bool(0.3);
            let shard = format!("{topic}_{}{}", if is_negative { "-" } else { "" }, key % SHARDS);
            let message = NewMessage {
                topic: topic.to_owned(),
                key: Some(format!("k{key}")),
                ..NewMessage::default()
            };
            let id = format!("{topic}-{}", self.now);
            let outstanding = Some(Ticks(self.now));
            let found = Found {
                id,
                lane: Lane(key as u16 % LANES),
                shard,
                outstanding,
                created: Ticks(self.now),
                not_before: None,
                is_delivered: false,
                aside: None,
                bytes: 0,
                message,
                problem: None,
            };
            self.rows.push(Seen::new(found, true).unwrap());
        }
    }

    fn query(&self, query: &Query, to: Ticks) -> Page {
        let from = query.from.as_ref().and_then(time_of).unwrap_or(Ticks(0));
        let of_shard = |row: &&Seen| row.found.shard == query.shard;
        let mut rows: Vec<Seen> = self
            .rows
            .iter()
            .filter(of_shard)
            .filter(|row| row.outstanding > from && row.outstanding <= to)
            .cloned()
            .collect();
        rows.sort_by_key(|row| row.outstanding);
        // As DynamoDB says it: there may be more, if there are as many as were asked for.
        let has_more = rows.len() >= query.limit as usize;
        rows.truncate(query.limit as usize);
        let next = rows.last().filter(|_| has_more);
        let next = next.and_then(|row| super::super::merge::place_of(&query.shard, &row.row));
        Page { seen: rows, next }
    }

    /// The index of all topics is in no order.
    fn scan(&self, from: Option<&Item>) -> Page {
        let mut rows = self.rows.clone();
        rows.sort_by_key(|row| (row.outstanding.0.wrapping_mul(0x9E37_79B9), row.outstanding));
        let from = from.and_then(time_of);
        let begin = from.map_or(0, |from| {
            let place = |at: Ticks| (at.0.wrapping_mul(0x9E37_79B9), at);
            rows.partition_point(|row| place(row.outstanding) <= place(from))
        });
        let rest = &rows[begin..];
        let page: Vec<Seen> = rest.iter().take(PAGE as usize).cloned().collect();
        let next = page.last().filter(|_| page.len() == PAGE as usize);
        let next = next.and_then(|row| super::super::merge::place_of("", &row.row));
        Page { seen: page, next }
    }

    fn new_of(&self, seen: &[Seen]) -> Vec<Seen> {
        let is_new =
            |it: &&Seen| !self.known.contains(&it.row) && self.lanes.contains(&it.found.lane);
        seen.iter().filter(is_new).cloned().collect()
    }

    /// A lane goes to another relay.
    fn lose(&mut self, lane: Lane) {
        self.lanes.remove(&lane);
        self.finder.forget(|it| it == lane);
        self.forget(lane);
    }

    fn forget(&mut self, lane: Lane) {
        for row in self.rows.iter().filter(|row| row.found.lane == lane) {
            self.known.remove(&row.row);
        }
        let is_of = |key: &str| key[1..].parse::<u16>().unwrap() % LANES == lane.0;
        self.taken.retain(|(_, key), _| !is_of(key));
    }

    /// The store knows that the relay has a lane; the relay knows it after some looks.
    fn gain(&mut self, lane: Lane) {
        self.finder.gain([lane].into_iter(), self.time().1);
        for _ in 0..self.luck.random_range(0..3) {
            self.look(50);
        }
        self.lanes.insert(lane);
    }

    /// A lane is lost and comes again while a look is under way.
    fn lose_and_gain(&mut self, lane: Lane) {
        self.forget(lane);
        self.finder.gain([lane].into_iter(), self.time().1);
        self.dropped = Some(lane);
        self.look(50);
        self.dropped = None;
    }

    /// One look. The relay has room for `room` messages. Returns whether something was read.
    fn look(&mut self, room: usize) -> bool {
        let now = self.time();
        let unwanted = self.unwanted.clone();
        let wants = |topic: &str| !unwanted.contains(topic);
        self.finder.begin(self.lanes.clone(), &self.known, now.1);
        match self.finder.look(1, wants, (50, PAGE), now) {
            Look::Scan { .. } => {
                self.requests += 1;
                let page = self.scan(None);
                let new = self.new_of(&page.seen);
                if page.next.is_some() {
                    self.finder.saw_some(new.iter(), SHARDS, now.1);
                    return true;
                }
                self.finder.saw_all(new.is_empty());
                let mut new: Vec<Seen> =
                    new.into_iter().filter(|it| wants(&it.found.message.topic)).collect();
                new.sort_by_key(|row| row.outstanding);
                self.take(new, room, wants).is_some()
            }
            Look::Shards(Plan { queries, page }) => {
                self.requests += queries.len() + usize::from(page.is_some());
                let read: Vec<_> =
                    queries.into_iter().map(|it| (self.query(&it, now.0), it)).collect();
                if let Some(from) = page {
                    let page = self.scan(from.as_ref());
                    let new = self.new_of(&page.seen);
                    self.finder.passed(new.iter(), page.next, now.1);
                }
                let (seen, shards) = merge(read.into_iter().map(|(page, it)| (it, page)).collect());
                let new = self.new_of(&seen);
                let left = self.take(new, room, wants);
                let any = left.is_some();
                let fates = Fates { left: left.unwrap_or_default(), ..Fates::default() };
                self.finder.read(&shards, &fates, now.1);
                any || self.finder.has_more(wants)
            }
        }
    }

    /// Takes what there is room for, and returns what is left; `None` if there was nothing.
    fn take(
        &mut self,
        new: Vec<Seen>,
        room: usize,
        wants: impl Fn(&str) -> bool,
    ) -> Option<HashSet<Row>> {
        let (mut left, mut given) = (HashSet::new(), Vec::new());
        let is_any = !new.is_empty();
        for (n, seen) in new.into_iter().enumerate() {
            if n >= room || !wants(&seen.found.message.topic) {
                left.insert(seen.row);
                continue;
            }
            given.push((seen.row.clone(), seen.found.lane));
            if self.dropped == Some(seen.found.lane) {
                continue;
            }
            let message = &seen.found.message;
            let key = (message.topic.clone(), message.key.clone().unwrap_or_default());
            self.taken.entry(key).or_default().push(seen.outstanding);
            self.known.insert(seen.row);
        }
        self.finder.gave(given.into_iter());
        is_any.then_some(left)
    }

    /// Some of what the relay has is marked, and leaves the indexes.
    fn mark(&mut self, share: f64) {
        let (known, luck) = (&self.known, &mut self.luck);
        self.rows.retain(|row| !known.contains(&row.row) || !luck.random_bool(share));
    }

    fn pass_time(&mut self) {
        let wait = self.finder.wait(|topic| !self.unwanted.contains(topic), self.time());
        let wait = wait.unwrap_or(Duration::from_secs(2)).max(Duration::from_millis(1));
        self.now += i64::try_from(wait.as_nanos() / 100).unwrap();
    }

    fn is_in_order(&self) -> bool {
        self.taken.values().all(|times| times.is_sorted())
    }

    fn is_taken(&self, topic: &str) -> bool {
        let of_topic = |row: &&Seen| row.found.message.topic == topic;
        self.rows.iter().filter(of_topic).all(|row| self.known.contains(&row.row))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]

    /// Of each key, messages come in the order of their creation, also if two shards hold it; and all of them come.
    #[test]
    fn everything_is_read_in_the_order_of_its_keys(seed in any::<u64>()) {
        let mut world = World::new(seed);
        // Negative shards are known of: else, the first message in one is found by the pass.
        world.finder = Finder::with_negative();
        let topics = ["a", "b", "c", "d"];
        for topic in topics {
            let count = world.luck.random_range(0..150);
            world.publish(topic, count);
        }
        for _ in 0..world.luck.random_range(0..200) {
            let lane = Lane(world.luck.random_range(0..LANES));
            match world.luck.random_range(0..14) {
                10 => world.lose(lane),
                11 | 12 if !world.lanes.contains(&lane) => world.gain(lane),
                13 if world.lanes.contains(&lane) => world.lose_and_gain(lane),
                0 => {
                    let topic = topics[world.luck.random_range(0..topics.len())];
                    let count = world.luck.random_range(0..40);
                    world.publish(topic, count);
                }
                1 => {
                    let topic = topics[world.luck.random_range(0..topics.len())].to_owned();
                    if !world.unwanted.remove(&topic) {
                        world.unwanted.insert(topic);
                    }
                }
                2 => world.mark(0.5),
                3 => world.pass_time(),
                _ => {
                    let room = world.luck.random_range(0..60);
                    world.look(room);
                }
            }
            prop_assert!(world.is_in_order());
        }
        world.unwanted.clear();
        for lane in (0..LANES).map(Lane) {
            if !world.lanes.contains(&lane) {
                world.gain(lane);
            }
        }
        for _ in 0..2_000 {
            if world.rows.is_empty() {
                break;
            }
            world.look(50);
            world.mark(1.0);
            world.pass_time();
        }
        prop_assert!(world.rows.is_empty(), "{} are left", world.rows.len());
        prop_assert!(world.is_in_order());
    }

    /// A topic that is never read to its end does not hold up another, also one that nobody has seen before.
    #[test]
    fn a_busy_topic_delays_no_other(seed in any::<u64>(), is_known in any::<bool>()) {
        let mut world = World::new(seed);
        world.publish("busy", 400);
        if is_known {
            world.publish("other", 1);
        }
        for _ in 0..20 {
            world.look(50);
            world.mark(1.0);
            world.publish("busy", 50);
        }
        world.publish("other", 1);
        let begun = world.now;
        let mut looks = 0;
        while !world.is_taken("other") {
            world.look(50);
            world.mark(1.0);
            world.publish("busy", 50);
            world.now += SECOND / 20;
            looks += 1;
            prop_assert!(looks < 400, "not after {looks} looks");
        }
        prop_assert!(!is_known || world.now - begun < 5 * SECOND, "{}", world.now - begun);
    }
}

/// What nobody takes costs a few requests each second, however much it is.
#[test]
fn what_cannot_be_read_costs_little() {
    for seed in 0..20 {
        let mut world = World::new(seed);
        world.publish("down", 5_000);
        world.publish("up", 10);
        world.unwanted.insert("down".to_owned());
        // The first pass looks at all of it, quickly.
        while world.now < 60 * SECOND {
            if !world.look(50) {
                world.pass_time();
            }
        }
        assert!(world.is_taken("up"));
        let (before, begun) = (world.requests, world.now);
        while world.now < begun + 60 * SECOND {
            if !world.look(50) {
                world.pass_time();
            }
        }
        let per_second = (world.requests - before) as f64 / 60.0;
        assert!(per_second < 6.0, "{per_second} requests a second");
    }
}

/// A message that is not due is left where it is, and found when it is due.
#[test]
fn a_message_that_is_left_until_later_is_read_then() {
    let mut world = World::new(7);
    world.publish("a", 200);
    let row = world.rows[20].row.clone();
    let due = Ticks(world.now + 30 * SECOND);
    world.finder.saw_some(world.rows[..1].iter(), SHARDS, world.start);
    let read = |world: &mut World, later: bool| {
        let now = world.time();
        let Look::Shards(plan) = world.finder.look(1, |_| true, (500, 500), now) else {
            panic!("there is more than a page")
        };
        let read: Vec<_> =
            plan.queries.into_iter().map(|it| (world.query(&it, now.0), it)).collect();
        let (seen, shards) = merge(read.into_iter().map(|(page, it)| (it, page)).collect());
        let later = later.then(|| (row.clone(), due));
        let fates = Fates { later: later.into_iter().collect(), ..Fates::default() };
        world.finder.read(&shards, &fates, now.1);
        seen.iter().any(|it| it.row == row)
    };
    assert!(read(&mut world, true));
    assert!(!read(&mut world, true), "it was passed");
    world.now = due.0;
    assert!(read(&mut world, false));
}
