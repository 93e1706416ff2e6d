mod random;

use super::{super::PendingReading, *};
use crate::{
    Headers, MessageId,
    outbox::{Aside, Gained, Origin, Place, Progress, SetAside},
};

fn gained(lane: u16, fence: i64, cursor: i64) -> Gained {
    let lease = LaneLease { lane: Lane(lane), fence: Fence(fence) };
    let (lags, before, held, aside) = Default::default();
    Gained { lease, cursor, lags, before, held, aside }
}

fn share(read: &ReadMessages, held: &[LaneLease], gained: Vec<Gained>) -> Shared {
    let mut shared = Shared { gained, ..Shared::default() };
    read.shared(held, &mut shared);
    shared
}

fn message(row: &str, lane: u16) -> (Row, Message) {
    let message = Message {
        id: MessageId::text(row),
        position: Position::default(),
        name: row.to_owned(),
        lane: Lane(lane),
        topic: "t".to_owned(),
        key: None,
        headers: Headers::new(),
        payload: Vec::new(),
        published_ms: 0,
        origin: Origin::Lane { due_in: None },
        damage: None,
    };
    (row.into(), message)
}

fn reader(lanes: &[u16]) -> Reader {
    let places = lanes.iter().map(|lane| Place { lane: Lane(*lane), after: 0 }).collect();
    Reader { places, most: 100, ..Reader::default() }
}

fn take_in(read: &ReadMessages, readers: &[Reader], rows: Vec<Vec<(Row, Message)>>) -> Claim {
    let (_, leases) = read.known();
    let reading = |messages| PendingReading { messages, more: false };
    let pending =
        Pending { readings: rows.into_iter().map(reading).collect(), ..Pending::default() };
    read.take_in(pending, readers, &leases)
}

fn positions(claim: &Claim) -> Vec<Position> {
    claim.readings.iter().flat_map(|it| &it.messages).map(|it| it.position).collect()
}

fn settlement(lanes: &[(u16, i64)], done: &[(u16, Position)]) -> Settlement {
    let progress = |(lane, fence): &(u16, i64)| Progress {
        lane: Lane(*lane),
        fence: Fence(*fence),
        cursor: 0,
        lags: Vec::new(),
        before: None,
    };
    Settlement {
        lanes: lanes.iter().map(progress).collect(),
        done: done.iter().map(|(lane, position)| (Lane(*lane), *position)).collect(),
        ..Settlement::default()
    }
}

#[test]
fn positions_grow_and_begin_behind_what_was_set_aside() {
    let read = ReadMessages::default();
    let shared = share(&read, &[], vec![gained(0, 1, 1_000), gained(5, 2, 64_000)]);
    assert!(shared.gained.iter().all(|gained| gained.cursor >= 64_000));
    let claim = take_in(&read, &[reader(&[0, 5])], vec![vec![message("a", 5), message("b", 0)]]);
    let given = positions(&claim);
    assert!(given[0].0 > shared.gained[0].cursor && given[1] > given[0], "{given:?}");
    assert!(claim.readings[0].read_to >= given[1].0);
}

#[test]
fn what_is_known_is_not_taken_in_twice_and_is_forgotten_when_it_is_marked() {
    let read = ReadMessages::default();
    share(&read, &[], vec![gained(0, 1, 0)]);
    let readers = [reader(&[0])];
    let first = positions(&take_in(&read, &readers, vec![vec![message("a", 0)]]));
    assert!(positions(&take_in(&read, &readers, vec![vec![message("a", 0)]])).is_empty());
    let settlement = settlement(&[(0, 1)], &[(0, first[0])]);
    let marks = read.marks(&settlement);
    assert_eq!((marks.done, marks.aside_done), (vec![(Lane(0), "a".into())], vec![]));
    read.marked(&settlement, &Settled::default());
    assert!(read.known().0.is_empty());
    let marks = read.marks(&settlement);
    assert_eq!((marks.done, marks.aside_done), (vec![], vec![(Lane(0), first[0])]));
}

#[test]
fn a_message_that_is_set_aside_brings_its_row_the_first_time() {
    let read = ReadMessages::default();
    share(&read, &[], vec![gained(0, 1, 0)]);
    let position = positions(&take_in(&read, &[reader(&[0])], vec![vec![message("a", 0)]]))[0];
    let (topic, sink) = ("t".to_owned(), "s".to_owned());
    let set = SetAside { lane: Lane(0), position, topic, key: None, sink, aside: Aside::Behind };
    let settlement = Settlement { aside: vec![set], ..settlement(&[(0, 1)], &[]) };
    let row = |read: &ReadMessages| read.marks(&settlement).aside[0].0.clone();
    assert_eq!(row(&read), Some("a".into()));
    // The store did not take it: the lane was lost.
    let late = Settled { late: vec![Lane(0)], ..Settled::default() };
    read.marked(&settlement, &late);
    assert_eq!(row(&read), Some("a".into()));
    read.marked(&settlement, &Settled::default());
    assert_eq!(row(&read), None);
}

#[test]
fn a_lease_that_ended_takes_what_was_read_with_it() {
    let read = ReadMessages::default();
    let first = share(&read, &[], vec![gained(0, 1, 0), gained(1, 2, 0)]);
    let held: Vec<LaneLease> = first.gained.iter().map(|gained| gained.lease).collect();
    let readers = [reader(&[0, 1])];
    let before = take_in(&read, &readers, vec![vec![message("a", 0), message("b", 1)]]);
    let (_, asked_under) = read.known();
    // Lane 0 was lost and gained again; lane 1 is kept.
    let mut shared =
        Shared { lost: vec![Lane(0)], gained: vec![gained(0, 3, 0)], ..Shared::default() };
    read.shared(&held, &mut shared);
    assert_eq!(read.known().0, HashSet::from(["b".into()]));
    let settlement = settlement(&[(0, 1), (1, 2)], &[(0, positions(&before)[0])]);
    assert!(read.marks(&settlement).done.is_empty(), "under the lease that ended");
    // What was asked for under the old lease is not taken in.
    let reading = PendingReading { messages: vec![message("a", 0), message("c", 1)], more: false };
    let pending = Pending { readings: vec![reading], ..Pending::default() };
    let claim = read.take_in(pending, &readers, &asked_under);
    assert_eq!(claim.readings[0].messages.len(), 1);
    read.forget(&[Lane(0), Lane(1)]);
    assert!(read.known().0.is_empty());
}

#[test]
fn a_reader_gets_its_own_lanes_only() {
    let read = ReadMessages::default();
    share(&read, &[], vec![gained(0, 1, 0), gained(1, 2, 0)]);
    let rows = vec![message("a", 0), message("b", 1), message("elsewhere", 9)];
    let claim = take_in(&read, &[reader(&[1])], vec![rows]);
    assert_eq!(claim.readings[0].messages[0].name, "b");
    assert_eq!(read.known().0.len(), 1, "others are still to be read");
}

#[test]
fn a_share_without_lanes_leaves_nothing_and_a_lane_that_is_gained_is_read_anew() {
    let read = ReadMessages::default();
    let first = share(&read, &[], vec![gained(0, 1, 0)]);
    let readers = [reader(&[0])];
    let one = positions(&take_in(&read, &readers, vec![vec![message("a", 0)]]));
    // The store says that it is gained, although it was held under the same fence.
    let held: Vec<LaneLease> = first.gained.iter().map(|gained| gained.lease).collect();
    share(&read, &held, vec![gained(0, 1, 0)]);
    let two = positions(&take_in(&read, &readers, vec![vec![message("a", 0)]]));
    assert!(one.len() == 1 && two.len() == 1 && two > one, "{one:?} {two:?}");
    // The store needs time, or went back: what is held is lost, and nothing was gained yet.
    let mut pending = Shared { pending: 1, lost: vec![Lane(0)], ..Shared::default() };
    read.shared(&held, &mut pending);
    assert_eq!(read.known(), (HashSet::new(), BTreeMap::new()));
    assert!(positions(&take_in(&read, &readers, vec![vec![message("a", 0)]])).is_empty());
}

#[test]
fn people_know_a_message_by_its_position_unless_the_store_names_it() {
    let read = ReadMessages::default();
    share(&read, &[], vec![gained(0, 1, 0)]);
    let (row, named) = message("a", 0);
    let unnamed = Message { id: Position::default().into(), ..named.clone() };
    let rows = vec![(row, named), ("b".into(), unnamed)];
    let claim = take_in(&read, &[reader(&[0])], vec![rows]);
    let messages = &claim.readings[0].messages;
    assert_eq!(messages[0].id, MessageId::text("a"));
    assert_eq!(messages[1].id, messages[1].position.into());
}
