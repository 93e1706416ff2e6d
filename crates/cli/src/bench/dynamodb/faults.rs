//! Nothing is lost, whatever DynamoDB does, and whoever is killed.

use super::{
    sink::Recording,
    tables::{Running, SHORT_LEASE, Tables},
};
use crate::bench::report::{Bound, Judge};
use anyhow::{Result, ensure};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tidegate::InspectOutbox;
use tidegate_drill::dynamodb::Faults;
use tokio::time::sleep;

/// Longer than this nothing takes.
const PATIENCE: Duration = Duration::from_secs(300);

/// 40 % of the items of batches are left unprocessed.
pub async fn unprocessed(tables: &Tables, messages: usize, judge: &mut Judge) -> Result<()> {
    let bench = tables.create("&min_age=0ms").await?;
    bench.proxy.set_faults(Faults { unprocessed: 0.4, ..Faults::default() });
    bench.publish(messages, messages, 5).await?;
    let sink = Arc::new(Recording::default());
    Running::start(bench.open("").await?, &sink, |options| options.drain = true)?.end().await?;
    let lost = messages - sink.seen().times.len().min(messages);
    judge.check("unprocessed: lost", Some(lost as f64), Bound::AtMost, 0.0);
    bench.drop().await
}

/// Half of the marks are throttled for a while.
pub async fn throttled(tables: &Tables, messages: usize, judge: &mut Judge) -> Result<()> {
    let bench = tables.create("&min_age=0ms").await?;
    bench.publish(messages, messages, 5).await?;
    bench.proxy.set_faults(Faults { throttled: [("UpdateItem", 0.5)].into(), ..Faults::default() });
    let sink = Arc::new(Recording::default());
    let relay = Running::start(bench.open("").await?, &sink, |options| options.drain = true)?;
    sleep(Duration::from_secs(10)).await;
    bench.proxy.set_faults(Faults::default());
    relay.end().await?;
    let lost = messages - sink.seen().times.len().min(messages);
    judge.check("throttled: lost", Some(lost as f64), Bound::AtMost, 0.0);
    // The relay lived: nothing was in flight when somebody else took over.
    judge.check("throttled: duplicates", Some(sink.seen().duplicates() as f64), Bound::AtMost, 0.0);
    bench.drop().await
}

/// Two relays, one of them killed every two seconds, with more outstanding than a page.
pub async fn kills(tables: &Tables, messages: usize, judge: &mut Judge) -> Result<()> {
    let bench = tables.create("&min_age=0ms").await?;
    let total = messages * 3;
    bench.publish(total, messages, 5).await?;
    let (sink, start) = (Arc::new(Recording::default()), Instant::now());
    let watcher = bench.open("").await?;
    let mut relays = Vec::new();
    let mut kills = 0;
    loop {
        while relays.len() < 2 {
            let store = bench.open("&page=500").await?;
            relays.push(Running::start(store, &sink, |options| options.lease = SHORT_LEASE)?);
        }
        sleep(Duration::from_secs(2)).await;
        if sink.seen().times.len() >= total && watcher.outstanding().await?.messages == 0 {
            break;
        }
        ensure!(
            start.elapsed() < PATIENCE,
            "relays did not finish: {} of {total}",
            sink.seen().times.len()
        );
        // Without a kill now and then that is not long enough, nobody would ever have all lanes for long.
        if kills < 20 {
            relays.remove(0).run.abort();
            kills += 1;
        }
    }
    for relay in relays {
        relay.stop.stop();
        relay.end().await?;
    }
    let (lost, out_of_order) = {
        let seen = sink.seen();
        (total - seen.times.len().min(total), seen.out_of_order)
    };
    judge.check("kills", Some(f64::from(kills)), Bound::AtLeast, 1.0);
    judge.check("kills: lost", Some(lost as f64), Bound::AtMost, 0.0);
    judge.check("kills: out of order", Some(out_of_order as f64), Bound::AtMost, 0.0);
    bench.drop().await
}
