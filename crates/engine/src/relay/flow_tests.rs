//! What a relay knows, step by step: races that a whole relay shows only by chance.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::{
    flow::Flow,
    plan::Plan,
    queue::Queued,
    reading::{Asked, PATIENCE},
    testing::two_sinks,
};
use std::{sync::Arc, time::Duration};
use tidegate_core::{
    Fence, Headers, Message, MessageId, Position,
    outbox::{
        Aside, Claim, ClaimRequest, Epoch, Gained, KeyHash, Lag, Lane, LaneLease, Origin, Place,
        Reading, SetAside, Settled, Shared, StuckState, Topics,
    },
    sink::Verdict,
};
use tokio::time::Instant;

const AT_ONCE: [Duration; 2] = [Duration::ZERO; 2];

fn gained(lane: u16, cursor: i64, lags: Vec<Lag>) -> Gained {
    let lease = LaneLease { lane: Lane(lane), fence: Fence(1) };
    let (before, held, aside) = Default::default();
    Gained { lease, cursor, lags, before, held, aside }
}

fn share(flow: &mut Flow, gained: Vec<Gained>) {
    flow.shared(Shared { gained, relays: 1, ..Shared::default() }, Instant::now());
}

fn flow(plan: &Plan, lanes: &[u16]) -> Flow {
    let mut flow = Flow::new(Arc::new(plan.clone()));
    share(&mut flow, lanes.iter().map(|lane| gained(*lane, 0, Vec::new())).collect());
    flow
}

fn message(id: i64, lane: u16, topic: &str) -> Message {
    Message {
        id: MessageId::number(id),
        position: Position(id),
        name: id.to_string(),
        lane: Lane(lane),
        topic: topic.to_owned(),
        key: None,
        headers: Headers::new(),
        payload: b"1".to_vec(),
        published_ms: 0,
        origin: Origin::Lane { due_in: None },
        damage: None,
    }
}

/// What a store that has these messages would answer.
fn answer(flow: &mut Flow, (request, asked): &(ClaimRequest, Asked), store: &[Message], to: i64) {
    let readings = request.readers.iter().map(|reader| {
        let wanted = store.iter().filter(|message| {
            let place = reader.places.iter().find(|place| place.lane == message.lane);
            reader.wants(&message.topic) && place.is_some_and(|it| message.position.0 > it.after)
        });
        Reading { messages: wanted.cloned().collect(), read_to: to, more: false }
    });
    flow.claimed(Claim { readings: readings.collect(), ..Claim::default() }, asked, Instant::now());
}

fn queued(flow: &Flow) -> Vec<usize> {
    flow.queues.iter().map(|queue| queue.load().0).collect()
}

fn lag(plan: &Plan, sink: &str, cursor: i64) -> Lag {
    Lag { sink: sink.to_owned(), topics: Topics::of_sink(&plan.routes, sink), cursor }
}

/// Also if the store has renewed lanes, or hands them out with the fences that they had.
#[test]
fn what_is_known_from_another_epoch_is_forgotten() {
    let epoch = || Epoch("later".to_owned());
    for (again, settled) in [(false, 0), (false, 7), (true, 0), (true, 7)] {
        let mut flow = flow(&two_sinks(), &[1, 2]);
        let asking = flow.ask(&AT_ONCE).unwrap();
        let store = [message(4, 1, "fast"), message(5, 2, "slow.a")];
        answer(&mut flow, &asking, &store, 9);
        assert_eq!(queued(&flow), [1, 1]);
        let gained = if again { vec![gained(1, 3, Vec::new())] } else { Vec::new() };
        let shared = Shared { epoch: epoch(), settled, gained, relays: 1, ..Shared::default() };
        flow.shared(shared, Instant::now());
        assert_eq!((flow.lanes.len(), queued(&flow)), (usize::from(again), vec![0, 0]));
        assert_eq!(*flow.epoch(), epoch());
        if again {
            let (request, _) = flow.ask(&AT_ONCE).unwrap();
            assert_eq!(request.epoch, epoch());
            assert_eq!(request.readers[0].places, [Place { lane: Lane(1), after: 3 }]);
            flow.aside.push(unrouted(6, 1));
            assert_eq!(flow.settlement().unwrap().number, settled + 1);
        }
    }
}

fn unrouted(id: i64, lane: u16) -> SetAside {
    let (topic, sink, key) = Default::default();
    SetAside { lane: Lane(lane), position: Position(id), topic, key, sink, aside: Aside::Unrouted }
}

#[test]
fn a_lane_that_will_be_given_back_is_not_passed_over() {
    let mut flow = flow(&two_sinks(), &[1, 2]);
    flow.shared(Shared { surplus: 1, relays: 2, ..Shared::default() }, Instant::now());
    let asking = flow.ask(&AT_ONCE).unwrap();
    let lanes: Vec<Lane> = asking.0.readers[0].places.iter().map(|it| it.lane).collect();
    assert_eq!(lanes, [Lane(1)]);
    assert!(!asking.1.whole, "a relay that drains has more to do");
    answer(&mut flow, &asking, &[], 100);
    let settlement = flow.settlement().unwrap();
    let moved: Vec<(Lane, i64)> = settlement.lanes.iter().map(|it| (it.lane, it.cursor)).collect();
    assert_eq!(moved, [(Lane(1), 100)], "nothing was read from the other one");
}

#[test]
fn what_is_read_apart_since_it_was_asked_for_is_read_once() {
    let plan = two_sinks();
    let mut flow = flow(&plan, &[1]);
    let asking = flow.ask(&AT_ONCE).unwrap();
    // Meanwhile a lane comes in whose sink `slow` lags.
    share(&mut flow, vec![gained(2, 0, vec![lag(&plan, "slow", 0)])]);
    let messages = [message(5, 1, "slow.x"), message(6, 1, "fast")];
    answer(&mut flow, &asking, &messages, 10);
    assert_eq!(queued(&flow), [0, 1]);
    let (request, _) = flow.ask(&AT_ONCE).unwrap();
    let lag = request.readers.iter().find(|reader| reader.name == "slow").unwrap();
    assert!(lag.places.iter().all(|place| place.after == 0), "it is still to be read");
}

#[test]
fn what_lagged_under_other_routes_is_read_once() {
    let plan = two_sinks();
    let mut flow = flow(&plan, &[1]);
    // In one lane, `slow` lags; in another, a sink did that had a part of its messages and more.
    flow.detach(0);
    let all = [
        message(3, 2, "slow.a"),
        message(4, 2, "fast.a"),
        message(5, 2, "slow.b"),
        message(6, 1, "slow.a"),
        message(7, 2, "slow.a"),
        message(8, 2, "fast.a"),
        message(9, 2, "slow.a"),
    ];
    let other = [super::testing::route("*.a", "gone")];
    let topics = Topics::of_sink(&other, "gone");
    let lag = Lag { sink: "gone".to_owned(), topics, cursor: 3 };
    share(&mut flow, vec![gained(2, 8, vec![lag])]);
    let asking = flow.ask(&AT_ONCE).unwrap();
    answer(&mut flow, &asking, &all, 20);
    assert_eq!(queued(&flow), [3, 2], "6, 7 and 9; 4 and 8");
    // Whoever takes over before anything is done finds the same.
    let progress = flow.settlement().unwrap().lanes.pop().unwrap();
    assert_eq!((progress.lane, progress.lags.len()), (Lane(2), 3));
    let next = Gained { lags: progress.lags, before: progress.before, ..gained(2, 8, Vec::new()) };
    let mut flow = super::flow::Flow::new(Arc::new(plan));
    share(&mut flow, vec![next]);
    let asking = flow.ask(&AT_ONCE).unwrap();
    answer(&mut flow, &asking, &all, 20);
    assert_eq!(queued(&flow), [2, 2]);
    let groups: Vec<_> = (0..2).map(|sink| flow.next_group(sink, |_| Some(10)).unwrap()).collect();
    for group in groups {
        let done = vec![Some(Verdict::Done); group.len()];
        flow.answered(group, done);
    }
    let progress = flow.settlement().unwrap().lanes.pop().unwrap();
    assert_eq!((progress.cursor, progress.before), (20, None), "it has caught up");
}

#[test]
fn what_is_being_set_aside_is_not_claimed_meanwhile() {
    let mut flow = flow(&two_sinks(), &[1]);
    let asking = flow.ask(&AT_ONCE).unwrap();
    answer(&mut flow, &asking, &[message(5, 1, "fast")], 10);
    let group = flow.next_group(1, |_| Some(10)).unwrap();
    flow.answered(group, vec![Some(Verdict::Retry("no".to_owned()))]);
    flow.settlement().unwrap();
    // The store may have it, although nobody knows yet.
    let (request, _) = flow.ask(&AT_ONCE).unwrap();
    assert_eq!(request.under_way, [Position(5)]);
    flow.settled(Settled::default());
    assert_eq!(flow.ask(&AT_ONCE).unwrap().0.under_way, []);
}

#[test]
fn one_sink_that_takes_none_of_its_due_messages_closes_no_other() {
    let mut flow = flow(&two_sinks(), &[1]);
    let asking = flow.ask(&AT_ONCE).unwrap();
    let origin =
        Origin::Aside { attempts: 1, sink: "slow".to_owned(), waited_for: StuckState::Retry };
    let due = (0..5_000).map(|id| Message { origin: origin.clone(), ..message(id, 1, "slow.x") });
    flow.claimed(Claim { due: due.collect(), ..Claim::default() }, &asking.1, Instant::now());
    let (request, _) = flow.ask(&AT_ONCE).unwrap();
    assert_eq!(request.closed, ["slow"]);
    assert!(request.most_due > 0);
}

#[test]
fn no_more_is_read_than_the_store_can_set_aside() {
    let plan = Plan { routes: Vec::new(), ..two_sinks() };
    let mut flow = flow(&plan, &[1]);
    for round in 0..4 {
        let asking = flow.ask(&AT_ONCE).unwrap();
        assert_eq!(asking.0.readers.len(), 1);
        let ids = round * 4_096 + 1..(round + 1) * 4_096 + 1;
        let messages: Vec<_> = ids.clone().map(|id| message(id, 1, "lost")).collect();
        answer(&mut flow, &asking, &messages, ids.end - 1);
        if round == 0 {
            flow.settlement().unwrap();
        }
    }
    assert!(flow.ask(&AT_ONCE).unwrap().0.readers.is_empty());
    flow.settled(Settled::default());
    assert_eq!(flow.ask(&AT_ONCE).unwrap().0.readers.len(), 1);
}

#[test]
fn a_lane_that_cannot_be_given_back_in_time_sets_aside_what_waits() {
    let mut flow = flow(&two_sinks(), &[1]);
    let asking = flow.ask(&AT_ONCE).unwrap();
    let messages = [message(1, 1, "slow.x"), message(2, 1, "slow.x"), message(3, 1, "fast")];
    answer(&mut flow, &asking, &messages, 10);
    let (slow, fast) =
        (flow.next_group(0, |_| Some(1)).unwrap(), flow.next_group(1, |_| Some(1)).unwrap());
    flow.answered(fast, vec![Some(Verdict::Done)]);
    let now = Instant::now();
    flow.shared(Shared { surplus: 1, relays: 2, ..Shared::default() }, now);
    assert_eq!(flow.next_eviction(), Some(now + PATIENCE));
    assert!(!flow.evict(now) && flow.evict(now + PATIENCE));
    assert_eq!(flow.aside.iter().map(|set| set.position).collect::<Vec<_>>(), [Position(2)]);
    // What was under way comes back without having been sent.
    flow.answered(slow, vec![None]);
    let settlement = flow.settlement().unwrap();
    let aside: Vec<_> = settlement.aside.iter().map(|set| (set.position.0, &set.aside)).collect();
    assert_eq!(aside, [(2, &Aside::Behind), (1, &Aside::Behind)]);
    assert_eq!(settlement.lanes[0].cursor, 10);
    assert_eq!(flow.leave(), [], "it is not settled yet");
    flow.settled(Settled::default());
    assert_eq!(flow.leave(), [LaneLease { lane: Lane(1), fence: Fence(1) }]);
}

/// Sinks may break on names that nobody measured; the rest of their keys goes on.
#[test]
fn what_is_too_long_is_dead_before_a_sink_sees_it() {
    let plan = two_sinks();
    let mut flow = flow(&plan, &[1]);
    let topic = plan.routes[0].topics.0.replace('*', "x");
    let keyed = |id, key: &str| Message { key: Some(key.to_owned()), ..message(id, 1, &topic) };
    let long = "k".repeat(1_025);
    let later = Origin::Lane { due_in: Some(Duration::from_secs(9)) };
    let delayed = Message { origin: later, ..keyed(2, &long) };
    let store = [keyed(1, &long), delayed, keyed(3, &"k".repeat(1_024)), keyed(4, "k")];
    let asking = flow.ask(&AT_ONCE).unwrap();
    answer(&mut flow, &asking, &store, 4);
    assert_eq!(queued(&flow).iter().sum::<usize>(), 2);
    let settlement = flow.settlement().unwrap();
    assert_eq!(settlement.lanes[0].cursor, 2);
    for set in &settlement.aside {
        let Aside::Dead { attempts: 0, reason, .. } = &set.aside else { panic!("{set:?}") };
        assert_eq!(reason, "the key has 1025 bytes; 1024 is the most");
    }
    assert_eq!(settlement.aside.len(), 2);
}

/// Whether or not a route takes it, and although somebody retries it.
#[test]
fn what_cannot_be_read_is_dead_with_its_reason() {
    let sink = Arc::new(super::testing::Fake::default());
    let plan = super::testing::plan(&[("s", &sink)], &[("t", "s")], super::TopicPolicy::default());
    let mut flow = flow(&plan, &[1]);
    let damaged = |id, topic: &str| {
        let damage = Some("its headers are no object of strings".to_owned());
        Message { damage, ..message(id, 1, topic) }
    };
    let store = [damaged(1, "t"), damaged(2, "nobody takes it"), message(3, 1, "t")];
    let asking = flow.ask(&[Duration::ZERO]).unwrap();
    answer(&mut flow, &asking, &store, 3);
    let settlement = flow.settlement().unwrap();
    flow.settled(Settled::default());
    let origin = |sink: &str| Origin::Aside {
        attempts: 0,
        sink: sink.to_owned(),
        waited_for: StuckState::Retry,
    };
    let due = store[..2].iter().zip(["s", ""]);
    let due = due.map(|(it, sink)| Message { origin: origin(sink), ..it.clone() }).collect();
    let asking = flow.ask(&[Duration::ZERO]).unwrap();
    flow.claimed(Claim { due, ..Claim::default() }, &asking.1, Instant::now());
    let again = flow.settlement().unwrap();
    for settlement in [settlement, again] {
        let ids: Vec<_> = settlement.aside.iter().map(|set| (set.position.0, &*set.sink)).collect();
        assert_eq!(ids, [(1, "s"), (2, "")]);
        for set in &settlement.aside {
            let Aside::Dead { attempts: 0, reason, .. } = &set.aside else { panic!("{set:?}") };
            assert_eq!(reason, "its headers are no object of strings");
        }
    }
    assert_eq!(queued(&flow).iter().sum::<usize>(), 1, "the third is on its way");
}

/// Coalescing counts a message as done because of another: that must be of the same key, and not only of one
/// with the same hash.
#[tokio::test]
async fn a_message_is_never_done_because_of_one_with_another_key() {
    let policy = super::TopicPolicy { coalesce: true, ..super::TopicPolicy::default() };
    let sink = Arc::new(super::testing::Fake::default());
    let plan = super::testing::plan(&[("s", &sink)], &[("*", "s")], policy);
    let mut flow = flow(&plan, &[1]);
    for (id, key) in [(1, "a"), (2, "b"), (3, "a"), (4, "c"), (5, "b")] {
        let message = Message { key: Some(key.to_owned()), ..message(id, 1, "t") };
        flow.lanes.get_mut(&Lane(1)).unwrap().open(0, message.position);
        // All of them have one hash.
        let (key, place, since) = (Some(KeyHash(7)), String::new(), Instant::now());
        let (line, fence, aside, single) = (0, Fence(1), None, false);
        flow.queues[0].push(Queued { message, line, fence, key, place, aside, single, since });
    }
    let (mut sent, mut covered) = (Vec::new(), Vec::new());
    while let Some(group) = flow.next_group(0, |_| Some(10)) {
        for (queued, by) in &group.covered {
            assert_eq!(queued.message.key, group.messages[*by].message.key);
            covered.push(queued.position().0);
        }
        sent.extend(group.messages.iter().map(|queued| queued.position().0));
        let done = vec![Some(Verdict::Done); group.messages.len()];
        flow.answered(group, done);
    }
    assert_eq!((sent, covered), (vec![3, 4, 5], vec![1, 2]));
}

/// A message of a key is in memory when one of the same key that was dead becomes due: what is read then must not be
/// set aside before it. After a crash, a store that is read by state would give the first a place behind the last.
#[test]
fn nothing_is_set_aside_before_earlier_ones_of_its_key_are_marked() {
    for by_state in [false, true] {
        let mut flow = flow(&two_sinks(), &[1]);
        flow.by_state = by_state;
        let keyed = |id| Message { key: Some("k".to_owned()), ..message(id, 1, "fast") };
        let asking = flow.ask(&AT_ONCE).unwrap();
        answer(&mut flow, &asking, &[keyed(6)], 6);
        let group = flow.next_group(1, |_| Some(10)).unwrap();
        let asking = flow.ask(&AT_ONCE).unwrap();
        let (sink, waited_for) = ("fast".to_owned(), StuckState::Retry);
        let due = Message { origin: Origin::Aside { attempts: 0, sink, waited_for }, ..keyed(3) };
        flow.claimed(Claim { due: vec![due], ..Claim::default() }, &asking.1, Instant::now());
        let asking = flow.ask(&AT_ONCE).unwrap();
        answer(&mut flow, &asking, &[keyed(7)], 7);
        // A log remembers by its cursor that 6 is to be read first.
        assert_eq!(flow.aside.len(), usize::from(!by_state));
        flow.answered(group, vec![Some(Verdict::Retry("no".to_owned()))]);
        let mut aside: Vec<i64> = flow.aside.iter().map(|set| set.position.0).collect();
        assert!(!by_state || aside == [6, 3, 7], "{aside:?}");
        aside.sort_unstable();
        assert_eq!(aside, [3, 6, 7], "all wait for the first that failed");
        flow.settlement().unwrap();
        flow.settled(Settled::default());
        let asking = flow.ask(&AT_ONCE).unwrap();
        answer(&mut flow, &asking, &[keyed(8)], 8);
        assert_eq!(flow.aside.len(), 1, "nothing of the key is in memory any more");
    }
}

/// A settlement that was on its way when a message was given up does not say so: what follows waits for the next.
#[test]
fn a_key_goes_on_when_the_store_knows_of_the_death_and_not_before() {
    let mut flow = flow(&two_sinks(), &[1]);
    let keyed = |id, key: &str| Message { key: Some(key.to_owned()), ..message(id, 1, "fast") };
    let asking = flow.ask(&AT_ONCE).unwrap();
    answer(&mut flow, &asking, &[keyed(1, "a"), keyed(2, "b"), keyed(3, "b")], 3);
    let [first, second] = [0, 1].map(|_| flow.next_group(1, |_| Some(1)).unwrap());
    flow.answered(first, vec![Some(Verdict::Done)]);
    flow.settlement().unwrap();
    flow.answered(second, vec![Some(Verdict::Dead("no".to_owned()))]);
    flow.settled(Settled::default());
    assert!(flow.next_group(1, |_| Some(1)).is_none(), "the store does not know yet");
    assert_eq!(flow.settlement().unwrap().aside.len(), 1);
    flow.settled(Settled::default());
    assert_eq!(flow.next_group(1, |_| Some(1)).unwrap().len(), 1);
}
