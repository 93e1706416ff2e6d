use super::*;
use crate::item::{Outgoing, decode, encode};
use tidegate_core::NewMessage;

fn seen(topic: &str, shard: u32) -> Seen {
    let message =
        NewMessage { topic: topic.to_owned(), payload: b"1".to_vec(), ..NewMessage::default() };
    let outgoing = Outgoing { id: "id", created: Ticks(7), shard };
    Seen::new(decode(&encode(&message, outgoing).unwrap()).unwrap(), true).unwrap()
}

fn look(finder: &mut Finder, now: Instant) -> Look {
    finder.look(3, |_| true, (100, 100), (Ticks(9), now))
}

#[test]
fn one_segment_is_enough_when_nothing_comes() {
    let (mut finder, now) = (Finder::default(), Instant::now());
    let mut segments = Vec::new();
    for _ in 0..5 {
        match look(&mut finder, now) {
            Look::Scan { segments: of } => segments.push(of),
            look => panic!("{look:?}"),
        }
        finder.saw_all(true);
    }
    assert_eq!(segments, [3, 3, 3, 1, 1]);
    finder.saw_all(false);
    assert_eq!(look(&mut finder, now), Look::Scan { segments: 3 });
}

#[test]
fn all_is_scanned_again_when_it_fits_into_one_page() {
    let (mut finder, now) = (Finder::default(), Instant::now());
    finder.saw_some([&seen("a", 0)].into_iter(), 3, now);
    assert!(matches!(look(&mut finder, now), Look::Shards(_)));
    let next = Item::from([("at".to_owned(), crate::item::number(1))]);
    finder.passed([].into_iter(), Some(next), now);
    finder.passed([].into_iter(), None, now);
    assert!(matches!(look(&mut finder, now), Look::Shards(_)), "there were two pages");
    finder.passed([].into_iter(), None, now);
    assert!(matches!(look(&mut finder, now), Look::Scan { .. }));
}

#[test]
fn lanes_are_doubted_for_as_long_as_indexes_lag() {
    let (mut finder, now) = (Finder::default(), Instant::now());
    finder.gain([Lane(3)].into_iter(), now);
    assert!(finder.must_verify(Lane(3)) && !finder.must_verify(Lane(4)));
    look(&mut finder, now + INDEX_LAG * 2);
    assert!(!finder.must_verify(Lane(3)));
}

/// Also if the last page is empty.
#[test]
fn what_a_pass_leaves_where_it_is_is_waited_for() {
    let (mut finder, now) = (Finder::default(), Instant::now());
    let next = Item::from([("at".to_owned(), crate::item::number(1))]);
    let second = now + Duration::from_secs(1);
    finder.saw_some([].into_iter(), 3, now);
    finder.leave(Duration::from_secs(9), now);
    finder.passed([].into_iter(), Some(next.clone()), now);
    finder.passed([].into_iter(), None, now);
    assert_eq!(finder.wait(|_| true, (Ticks(0), second)), Some(Duration::from_secs(8)));
    finder.passed([].into_iter(), Some(next), second);
    finder.passed([].into_iter(), None, second);
    assert_eq!(finder.wait(|_| true, (Ticks(0), second)), None, "it is not there any more");
}
