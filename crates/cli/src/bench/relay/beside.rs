//! A sink beside one that never answers.

use super::{
    Row,
    database::Database,
    median,
    sink::{Counting, plan},
    throughput::{drain_rest, publish},
};
use crate::bench::report::{Bound, Judge};
use anyhow::Result;
use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};
use tidegate::{
    Stop,
    relay::{Relay, RelayOptions},
    worker_id,
};
use tokio::time::sleep;

const MESSAGES: u64 = 100_000;
const NEVER: Duration = Duration::from_secs(100_000);

pub async fn measure(
    database: &Database,
    repeat: usize,
    rows: &mut Vec<Row>,
    judge: &mut Judge,
) -> Result<()> {
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..repeat {
        alone.push(deliver(database, Duration::ZERO).await?);
        beside.push(deliver(database, NEVER).await?);
    }
    let (alone, beside) = (median(alone), median(beside));
    rows.push(Row::new("a sink beside one that answers", MESSAGES, alone));
    let ratio = Some(alone / beside);
    rows.push(Row { ratio, ..Row::new("a sink beside one that never answers", MESSAGES, beside) });
    judge.check(
        "beside a sink that never answers / beside one that does",
        ratio,
        Bound::AtLeast,
        0.9,
    );
    Ok(())
}

/// Every eleventh message goes to another sink, which takes as long. Returns how long it took until the
/// first had all of its own.
async fn deliver(database: &Database, other_takes: Duration) -> Result<f64> {
    let topic = |n: u64| if n.is_multiple_of(11) { "other".to_owned() } else { "own".to_owned() };
    publish(&database.store, MESSAGES * 11 / 10, topic).await?;
    let own = Arc::new(Counting { group: 1_000, ..Counting::default() });
    let other = Arc::new(Counting { group: 1_000, takes: other_takes, ..Counting::default() });
    let options = RelayOptions { grace: Duration::ZERO, ..RelayOptions::new(worker_id()) };
    let plan = plan(&[("other", "other", other), ("own", "own", own.clone())]);
    let relay = Relay::new(database.store.outbox_store(), plan, options)?;
    let (stop, start) = (Stop::new(), Instant::now());
    let all = async {
        while own.seen.load(Relaxed) < MESSAGES {
            sleep(Duration::from_millis(2)).await;
        }
        let seconds = start.elapsed().as_secs_f64();
        stop.stop();
        seconds
    };
    let (ran, seconds) = tokio::join!(relay.run(stop.clone()), all);
    ran?;
    drain_rest(database).await?;
    Ok(seconds)
}
