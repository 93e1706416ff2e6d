use super::*;
use crate::item::{Outgoing, decode, encode};
use tidegate_core::NewMessage;

fn seen(topic: &str, shard: u32) -> Seen {
    let message =
        NewMessage { topic: topic.to_owned(), payload: b"1".to_vec(), ..NewMessage::default() };
    let outgoing = Outgoing { id: "id", created: crate::Ticks(7), shard };
    Seen::new(decode(&encode(&message, outgoing).unwrap()).unwrap()).unwrap()
}

fn place(n: u32) -> Option<Item> {
    Some(Item::from([("at".to_owned(), crate::item::number(n))]))
}

fn names(look: &Look) -> Vec<&str> {
    match look {
        Look::Scan { .. } => vec!["scan"],
        Look::Shards { shards, .. } => shards.iter().map(|(name, _)| name.as_str()).collect(),
    }
}

#[test]
fn one_segment_is_enough_when_nothing_comes() {
    let (mut finder, now) = (Finder::default(), Instant::now());
    let mut segments = Vec::new();
    for _ in 0..5 {
        match finder.look(3, |_| true, now) {
            Look::Scan { segments: of } => segments.push(of),
            look => panic!("{look:?}"),
        }
        finder.saw_all(true);
    }
    assert_eq!(segments, [3, 3, 3, 1, 1]);
    finder.saw_all(false);
    assert_eq!(finder.look(3, |_| true, now), Look::Scan { segments: 3 });
}

#[test]
fn shards_with_something_new_are_read_to_their_ends_and_then_all_is_scanned_again() {
    let (mut finder, now) = (Finder::default(), Instant::now());
    finder.saw_some([&seen("a", 0), &seen("b", 1)].into_iter());
    let look = finder.look(3, |_| true, now);
    assert_eq!(names(&look), ["a_0", "b_1"]);
    finder.scanned([&seen("c", 2)].into_iter(), None);
    finder.read("a_0", place(1));
    finder.read("b_1", None);
    assert!(finder.looked(10, 100, |_| true, now));
    assert_eq!(names(&finder.look(3, |_| true, now)), ["c_2", "a_0"]);
    finder.read("a_0", None);
    finder.read("c_2", None);
    assert!(!finder.looked(10, 100, |_| true, now));
    assert_eq!(names(&finder.look(3, |_| true, now)), ["scan"]);
}

#[test]
fn topics_that_nobody_wants_are_not_read_and_hold_nothing_up() {
    let (mut finder, now) = (Finder::default(), Instant::now());
    let wants = |topic: &str| topic == "a";
    finder.saw_some([&seen("a", 0), &seen("slow", 1)].into_iter());
    finder.scanned([].into_iter(), None);
    assert_eq!(names(&finder.look(3, wants, now)), ["a_0"]);
    finder.read("a_0", None);
    assert!(!finder.looked(1, 100, wants, now), "what nobody wants is not more to read");
}

#[test]
fn what_was_left_of_a_shard_comes_before_what_follows_it() {
    let (mut finder, now) = (Finder::default(), Instant::now());
    finder.saw_some([&seen("a", 0)].into_iter());
    finder.scanned([].into_iter(), None);
    finder.look(3, |_| true, now);
    finder.read("a_0", place(9));
    finder.read_again(&BTreeSet::from(["a_0".to_owned()]));
    let look = finder.look(3, |_| true, now);
    assert_eq!(look, Look::Shards { shards: vec![("a_0".to_owned(), None)], scan: None });
}

#[test]
fn lanes_are_doubted_for_as_long_as_indexes_lag() {
    let (mut finder, now) = (Finder::default(), Instant::now());
    finder.gain([Lane(3)].into_iter(), now);
    assert!(finder.must_verify(Lane(3)) && !finder.must_verify(Lane(4)));
    finder.look(3, |_| true, now + INDEX_LAG * 2);
    assert!(!finder.must_verify(Lane(3)));
}
