//! Nothing is lost when DynamoDB leaves items unprocessed or throttles.

use super::{
    sink::Recording,
    tables::{Running, Tables},
};
use crate::bench::report::{Bound, Judge};
use anyhow::Result;
use std::{sync::Arc, time::Duration};
use tidegate_drill::dynamodb::Faults;
use tokio::time::sleep;

/// 40 % of the items of batches are left unprocessed.
pub async fn unprocessed(tables: &Tables, messages: usize, judge: &mut Judge) -> Result<()> {
    let bench = tables.create("&min_age=0ms").await?;
    bench.proxy.set_faults(Faults { unprocessed: 0.4, ..Faults::default() });
    bench.publish(messages, messages, 5).await?;
    let sink = Arc::new(Recording::default());
    Running::start(bench.open("").await?, sink.clone(), |options| options.drain = true)?
        .end()
        .await?;
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
    let relay =
        Running::start(bench.open("").await?, sink.clone(), |options| options.drain = true)?;
    sleep(Duration::from_secs(10)).await;
    bench.proxy.set_faults(Faults::default());
    relay.end().await?;
    let lost = messages - sink.seen().times.len().min(messages);
    judge.check("throttled: lost", Some(lost as f64), Bound::AtMost, 0.0);
    // The relay lived: nothing was in flight when somebody else took over.
    judge.check("throttled: duplicates", Some(sink.seen().duplicates() as f64), Bound::AtMost, 0.0);
    bench.drop().await
}
