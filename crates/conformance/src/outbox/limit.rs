//! A limit on the messages that are outstanding.

use super::{
    bench::Bench,
    relay::{Relay, dead, new_message, retry},
};
use crate::harness::LATER;
use tidegate_core::{
    Kind,
    outbox::{Lag, OnDead, Outstanding, Route, Topics},
};

async fn outstanding(bench: &Bench) -> Outstanding {
    bench.store.outstanding().await.expect("count what is outstanding")
}

async fn limit(bench: &Bench, most: Option<u64>) {
    bench.store.limit_outstanding(most).await.expect("set a limit");
}

/// By a publisher that has counted nothing yet: one that has may believe that for a while.
async fn refused(bench: &Bench) {
    let error = bench.handle().publish(vec![new_message("t", None)]).await.expect_err("it is full");
    assert_eq!(error.kind(), Kind::Full, "{error}");
    assert!(error.is_passing() && error.to_string().contains("limit"), "{error}");
}

pub(crate) async fn nothing_is_taken_while_too_many_are_outstanding(bench: Bench) {
    assert_eq!(outstanding(&bench).await, Outstanding { messages: 0, limit: None });
    limit(&bench, Some(3)).await;
    bench.publish(vec![new_message("t", "k"); 2]).await;
    assert!((2..=3).contains(&outstanding(&bench).await.messages));
    assert_eq!(bench.outbox().await.limit, Some(3));
    bench.publish(vec![new_message("t", "k"); 2]).await;
    refused(&bench).await;
    assert_eq!(outstanding(&bench).await.limit, Some(3));
    let mut relay = Relay::start(&bench, "a").await;
    relay.finish().await;
    bench.publish(vec![new_message("t", "k"); 5]).await;
    refused(&bench).await;
    limit(&bench, None).await;
    bench.publish(vec![new_message("t", "k")]).await;
    assert_eq!(bench.outbox().await.limit, None);
}

pub(crate) async fn what_was_set_aside_is_outstanding_and_the_dead_are_not(bench: Bench) {
    bench.publish(vec![new_message("t", None); 4]).await;
    let mut relay = Relay::start(&bench, "a").await;
    let read = relay.read().await;
    let step = relay.step().to(read[3].position).aside(&read[0], retry(LATER));
    step.aside(&read[1], retry(LATER)).aside(&read[2], dead(OnDead::Skip)).send().await;
    assert_eq!(outstanding(&bench).await.messages, 2);
    limit(&bench, Some(2)).await;
    refused(&bench).await;
    limit(&bench, Some(3)).await;
    bench.publish(vec![new_message("t", None)]).await;
}

/// One lane, or one sink, that is far behind is not lost among those that are not.
pub(crate) async fn outstanding_is_never_too_low(bench: Bench) {
    bench.publish(vec![new_message("slow", "one key"); 200]).await;
    let mut relay = Relay::start(&bench, "a").await;
    let read = relay.read().await;
    let (lane, last) = (read[0].lane, read[199].position);
    let behind = relay.lanes.remove(&lane).expect("it has all lanes");
    relay.step().to(last).send().await;
    assert!(outstanding(&bench).await.messages >= 200);
    relay.lanes.insert(lane, behind);
    let routes =
        [Route { topics: tidegate_core::outbox::Pattern("slow".into()), sink: "s".into() }];
    let topics = Topics::of_sink(&routes, "s");
    let lag = Lag { sink: "s".to_owned(), topics, cursor: read[9].position.0 };
    relay.step().to(last).lags(&[lag]).send().await;
    assert!(outstanding(&bench).await.messages >= 190);
    relay.step().lags(&[]).send().await;
    assert_eq!(outstanding(&bench).await.messages, 0);
}
