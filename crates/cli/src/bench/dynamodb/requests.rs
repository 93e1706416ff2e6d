//! How many requests it takes to find nothing, and to relay messages.

use super::{
    Row,
    sink::Recording,
    tables::{Running, Tables},
};
use crate::bench::report::{Bound, Judge};
use anyhow::{Result, ensure};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tidegate::outbox::Outbox;
use tidegate_drill::dynamodb::Counters;
use tokio::time::sleep;

/// A look that finds nothing, where five topics of twenty shards had messages.
pub async fn empty(tables: &Tables, judge: &mut Judge) -> Result<()> {
    let bench = tables.create("&shards=20&min_age=0ms").await?;
    bench.publish(500, 500, 5).await?;
    let sink = Arc::new(Recording::default());
    let store = bench.open("").await?;
    Running::start(store.clone(), sink.clone(), |options| options.drain = true)?.end().await?;
    // The next relay asks at once, again and again: its first looks take all segments.
    bench.proxy.reset_counters();
    let relay = Running::start(bench.open("").await?, sink.clone(), |options| {
        options.poll = Duration::from_millis(200);
    })?;
    let mut most = 0;
    let (mut before, mut looks) = (0, 0);
    while looks < 5 {
        sleep(Duration::from_millis(20)).await;
        let scans = bench.proxy.counters().of("Scan").requests;
        if scans > before {
            // A look is over when nothing has come for a while.
            sleep(Duration::from_millis(60)).await;
            let scans = bench.proxy.counters().of("Scan").requests;
            most = most.max(scans - before);
            (before, looks) = (scans, looks + 1);
        }
    }
    let queries = bench.proxy.counters().of("Query").requests;
    relay.stop.stop();
    relay.end().await?;
    judge.check("requests of an empty look", Some(most as f64), Bound::AtMost, 3.0);
    // Taking over asks for what waits, once.
    judge.check("queries of an empty relay", Some(queries as f64), Bound::AtMost, 8.0);
    bench.drop().await
}

/// A relay that has nothing to do for a minute, and a message after it.
pub async fn idle(tables: &Tables, judge: &mut Judge) -> Result<()> {
    let bench = tables.create("").await?;
    let sink = Arc::new(Recording::default());
    let store = bench.open("").await?;
    let habits = store.outbox_capabilities().habits;
    let relay = Running::start(store, sink.clone(), |options| {
        (options.poll, options.lease) = (habits.poll, habits.lease);
    })?;
    // Until it has learned that there is nothing.
    sleep(Duration::from_secs(15)).await;
    bench.proxy.reset_counters();
    sleep(Duration::from_secs(60)).await;
    let requests = bench.proxy.counters().total().requests;
    judge.check("requests of an idle minute", Some(requests as f64), Bound::AtMost, 30.0);
    let mut longest = Duration::ZERO;
    for n in 1..=5 {
        let published = Instant::now();
        bench.publish(1, 1, 1).await?;
        while sink.seen().times.len() < n {
            ensure!(published.elapsed() < Duration::from_secs(30), "a message was never found");
            sleep(Duration::from_millis(5)).await;
        }
        longest = longest.max(published.elapsed());
        // Idle again, and at another moment between two looks.
        sleep(Duration::from_millis(12_000 + 530 * n as u64)).await;
    }
    judge.check(
        "seconds until a message is found",
        Some(longest.as_secs_f64()),
        Bound::AtMost,
        3.0,
    );
    relay.stop.stop();
    relay.end().await?;
    bench.drop().await
}

/// Messages are published, relayed and marked.
pub async fn relay(
    tables: &Tables,
    messages: usize,
    rows: &mut Vec<Row>,
    judge: &mut Judge,
) -> Result<()> {
    let bench = tables.create("&min_age=0ms").await?;
    bench.publish(messages, messages, 5).await?;
    let published = Row::new("publish", messages, &bench.proxy.counters());
    bench.proxy.reset_counters();
    let sink = Arc::new(Recording::default());
    Running::start(bench.open("").await?, sink.clone(), |options| options.drain = true)?
        .end()
        .await?;
    ensure!(sink.seen().times.len() == messages, "not every message was delivered");
    let counters = bench.proxy.counters();
    let of = |operations: &[&str]| {
        let chosen =
            counters.operations.iter().filter(|(name, _)| operations.contains(&name.as_str()));
        Counters { operations: chosen.map(|(name, count)| (name.clone(), *count)).collect() }
    };
    let read = Row::new("read", messages, &of(&["Scan", "Query", "BatchGetItem"]));
    let marked = Row::new("mark", messages, &of(&["UpdateItem", "TransactWriteItems"]));
    judge.check(
        "publish: requests per message",
        Some(published.per_message()),
        Bound::AtMost,
        0.05,
    );
    judge.check("read: requests per message", Some(read.per_message()), Bound::AtMost, 0.05);
    // Beside the marks there are the signs of life of the relay.
    judge.check("mark: requests per message", Some(marked.per_message()), Bound::AtMost, 1.01);
    judge.check("duplicates", Some(sink.seen().duplicates() as f64), Bound::AtMost, 0.0);
    rows.extend([published, read, marked]);
    bench.drop().await
}
