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

/// Whether shards are read from their beginnings.
fn begins(finder: &mut Finder, now: Instant) -> bool {
    match look(finder, now) {
        Look::Shards(plan) => plan.queries.iter().all(|query| query.from.is_none()),
        look => panic!("{look:?}"),
    }
}

/// All of what the next look reads is read, and there is more.
fn read_on(finder: &mut Finder, now: Instant) {
    let Look::Shards(plan) = look(finder, now) else { panic!("there is more than a page") };
    let row = super::super::row("id", Ticks(7));
    let page = |query: super::super::backlog::Query| {
        let next = super::super::merge::place_of(&query.shard, &row);
        ShardPage { query, rows: vec![row.clone()], next, is_cut: false }
    };
    let pages: Vec<ShardPage> = plan.queries.into_iter().map(page).collect();
    finder.read(&pages, &Fates::default(), now);
}

/// A lane is gained while a look is under way that was not asked for it. Its messages were passed by.
#[test]
fn shards_are_read_anew_when_a_look_is_for_more_lanes_than_the_one_before() {
    let (mut finder, now) = (Finder::default(), Instant::now());
    let (none, lanes) = (HashSet::new(), |of: std::ops::Range<u16>| of.map(Lane).collect());
    finder.saw_some([&seen("a", 0)].into_iter(), 3, now);
    finder.begin(lanes(0..2), &none, now);
    read_on(&mut finder, now);
    finder.begin(lanes(0..2), &none, now);
    assert!(!begins(&mut finder, now));
    finder.begin(lanes(0..1), &none, now);
    assert!(!begins(&mut finder, now), "what is left was read");
    finder.begin(lanes(0..2), &none, now);
    assert!(begins(&mut finder, now), "lane 1 was passed by");
}

/// A lane is lost and comes again while a look is under way: the relay takes nothing of what it gives.
#[test]
fn shards_are_read_anew_when_what_was_given_was_not_taken() {
    let (mut finder, now) = (Finder::default(), Instant::now());
    let (rows, lanes) = ((Row::from("7/one"), Row::from("7/two")), HashSet::from([Lane(0)]));
    finder.saw_some([&seen("a", 0)].into_iter(), 3, now);
    for (known, marked, is_anew) in
        [(true, false, false), (false, true, false), (false, false, true)]
    {
        finder.begin(lanes.clone(), &HashSet::from([rows.0.clone()]), now);
        read_on(&mut finder, now);
        finder.gave([(rows.0.clone(), Lane(0)), (rows.1.clone(), Lane(0))].into_iter());
        let mut taken = HashSet::from([rows.0.clone()]);
        taken.extend(known.then(|| rows.1.clone()));
        finder.recent = Recent::default();
        finder.marked(marked.then(|| rows.1.clone()).into_iter(), now);
        finder.begin(lanes.clone(), &taken, now);
        assert_eq!(begins(&mut finder, now), is_anew, "known: {known}, marked: {marked}");
    }
}
