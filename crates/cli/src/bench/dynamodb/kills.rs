//! Nothing is lost when relays are killed.

use super::{
    sink::Recording,
    tables::{Bench, Running, SHORT_LEASE, Tables},
};
use crate::bench::report::{Bound, Judge};
use anyhow::{Result, ensure};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tidegate::{InspectOutbox, Sink};
use tokio::time::sleep;

/// Longer than this nothing takes.
const PATIENCE: Duration = Duration::from_secs(300);

/// How long a relay works before it is killed.
const LIFE: Duration = Duration::from_secs(2);

/// After so many kills the relays are left alone. Every relay reads the table anew, so a slow machine might never
/// finish otherwise.
const MOST_KILLS: u32 = 20;

/// More is outstanding than a page holds.
pub async fn measure(tables: &Tables, messages: usize, judge: &mut Judge) -> Result<()> {
    let bench = tables.create("&min_age=0ms").await?;
    let total = messages * 3;
    let ids = bench.publish(total, messages).await?;
    let sink = Arc::new(Recording::default());
    let kills = kill_until_done(&bench, || Ok(sink.clone())).await?;
    let ((lost, unexpected), out_of_order) = {
        let seen = sink.seen();
        (seen.compared_with(&ids), seen.out_of_order)
    };
    judge.check("kills", Some(f64::from(kills)), Bound::AtLeast, 1.0);
    judge.check("kills: lost", Some(lost as f64), Bound::AtMost, 0.0);
    judge.check("kills: unexpected", Some(unexpected as f64), Bound::AtMost, 0.0);
    judge.check("kills: out of order", Some(out_of_order as f64), Bound::AtMost, 0.0);
    bench.drop().await
}

/// Runs two relays, and kills one of them again and again, until nothing is outstanding. Returns the number of kills.
pub async fn kill_until_done(
    bench: &Bench,
    sink: impl Fn() -> Result<Arc<dyn Sink>>,
) -> Result<u32> {
    let (watcher, start) = (bench.open("").await?, Instant::now());
    let (mut relays, mut kills) = (Vec::new(), 0);
    loop {
        while relays.len() < 2 {
            let store = bench.open("&page=500").await?;
            relays.push(Running::start(store, sink()?, |options| options.lease = SHORT_LEASE)?);
        }
        sleep(LIFE).await;
        let outstanding = watcher.outstanding().await?.messages;
        if outstanding == 0 {
            break;
        }
        ensure!(start.elapsed() < PATIENCE, "relays did not finish: {outstanding} are outstanding");
        if kills < MOST_KILLS {
            relays.remove(0).run.abort();
            kills += 1;
        }
    }
    for relay in relays {
        relay.stop.stop();
        relay.end().await?;
    }
    Ok(kills)
}
