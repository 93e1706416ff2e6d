//! Sinks that are behind their lanes.

use super::{
    bench::Bench,
    relay::{Relay, new_message, positions, route},
};
use tidegate_core::{
    Position,
    outbox::{Before, Lag, Place, Reader, Topics},
};

fn topics(sink: &str) -> Topics {
    Topics::of_sink(&[route("fast.*", "fast"), route("slow.a", "slow"), route("*.b", "slow")], sink)
}

fn lag(sink: &str, cursor: Position) -> Lag {
    Lag { sink: sink.to_owned(), topics: topics(sink), cursor: cursor.0 }
}

/// A relay that has read what was published: where its messages are.
async fn started(bench: &Bench) -> (Relay, Vec<Position>) {
    let message = |n: usize| {
        let topic = ["slow.a", "fast.a", "slow.b"][n % 3];
        new_message(topic, ["k", "l", "m", "n"][n % 4])
    };
    bench.publish((0..24).map(message).collect()).await;
    let relay = Relay::start(bench, "a").await;
    let read = relay.read().await;
    (relay, positions(&read))
}

pub(crate) async fn a_lag_is_taken_over_as_it_was(bench: Bench) {
    let (mut relay, published) = started(&bench).await;
    let lags = [lag("fast", published[7]), lag("slow", published[3])];
    relay.step().to(published[20]).lags(&lags).send().await;
    relay.end().await;
    let mut relay = Relay::new(&bench, "b");
    for gained in relay.share(crate::harness::LATER).await.gained {
        assert_eq!(gained.cursor, published[20].0);
        let mut found = gained.lags;
        found.sort_by(|one, other| one.sink.cmp(&other.sink));
        assert_eq!(found, lags);
    }
}

pub(crate) async fn what_was_done_under_other_routes_is_taken_over(bench: Bench) {
    let (mut relay, published) = started(&bench).await;
    let first = Before { cursor: 3, lags: vec![lag("fast", published[1])], before: None };
    let lags = vec![lag("slow", published[2])];
    let before = Before { cursor: 5, lags, before: Some(Box::new(first)) };
    relay.step().to(published[20]).before(Some(&before)).send().await;
    relay.end().await;
    let mut relay = Relay::new(&bench, "b");
    let shared = relay.share(crate::harness::LATER).await;
    assert!(shared.gained.iter().all(|gained| gained.before.as_ref() == Some(&before)));
    relay.step().before(None).send().await;
    relay.end().await;
    let shared = Relay::new(&bench, "c").share(crate::harness::LATER).await;
    assert!(shared.gained.iter().all(|gained| gained.before.is_none()));
}

pub(crate) async fn lags_replace_those_that_were_stored(bench: Bench) {
    let (mut relay, published) = started(&bench).await;
    let outstanding = async || {
        let topics = bench.outbox().await.topics;
        topics.iter().map(|topic| topic.outstanding).sum::<u64>()
    };
    relay.step().to(published[23]).lags(&[lag("slow", published[2])]).send().await;
    assert_eq!(outstanding().await, 14, "the slow ones behind the third");
    relay.step().lags(&[lag("slow", published[11])]).send().await;
    assert_eq!(outstanding().await, 8);
    let one = *relay.lanes.keys().next().expect("it has all lanes");
    relay.lanes.get_mut(&one).expect("it has it").lags.clear();
    relay.step().send().await;
    relay.step().lags(&[]).send().await;
    assert_eq!(bench.outbox().await.topics, [], "it has caught up");
}

pub(crate) async fn what_lags_is_read_apart_from_the_rest(bench: Bench) {
    let (mut relay, published) = started(&bench).await;
    let behind = lag("slow", published[5]);
    relay.step().to(published[17]).lags(std::slice::from_ref(&behind)).send().await;
    let whole = Reader { leaves: vec![topics("slow")], ..relay.reader() };
    let place = |place: &Place| Place { after: behind.cursor, ..*place };
    let slow = Reader {
        name: "slow".to_owned(),
        takes: Some(topics("slow")),
        places: whole.places.iter().map(place).collect(),
        ..relay.reader()
    };
    let by_place = |wanted: fn(usize) -> bool| {
        published.iter().enumerate().filter(move |(n, _)| wanted(*n)).map(|(_, id)| *id)
    };
    let fast: Vec<Position> = by_place(|n| n > 17 && n % 3 == 1).collect();
    assert_eq!(positions(&relay.read_with(whole).await), fast);
    let late: Vec<Position> = by_place(|n| n > 5 && n % 3 != 1).collect();
    assert_eq!(positions(&relay.read_with(slow).await), late);
}

pub(crate) async fn what_was_set_aside_beyond_a_lag_is_told(bench: Bench) {
    let (mut relay, published) = started(&bench).await;
    let read = relay.read().await;
    let step = relay.step().to(published[12]).lags(&[lag("slow", published[3])]);
    let step = step.aside(&read[2], super::relay::retry(crate::harness::LATER));
    let step = step.aside(&read[8], super::relay::retry(crate::harness::LATER));
    step.aside(&read[14], super::relay::retry(crate::harness::LATER)).send().await;
    assert_eq!(bench.topic("slow.b").await.outstanding, 8);
    relay.end().await;
    let shared = Relay::new(&bench, "b").share(crate::harness::LATER).await;
    let mut told: Vec<Position> = shared.gained.into_iter().flat_map(|it| it.aside).collect();
    told.sort_unstable();
    assert_eq!(told, [published[8], published[14]]);
}
