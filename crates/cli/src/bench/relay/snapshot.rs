//! A snapshot that is open for long: what it may see stays, whatever becomes of it, and is in the way of those who
//! look for what is there now.

use super::{
    RelayArgs, Row,
    database::Database,
    median,
    sink::{Counting, plan},
    throughput::{deliver, drain_rest, publish},
};
use crate::bench::{
    meter::connect,
    report::{Bound, Judge},
};
use anyhow::{Context, Result};
use std::{sync::Arc, time::Duration};
use tidegate::{
    OpenStore, Stop,
    relay::{Relay, RelayOptions},
    worker_id,
};
use tokio::time::{Instant, sleep};

/// How long messages come in one by one before it is looked what that did.
const AGE: Duration = Duration::from_secs(20);
/// The server counts what is dead within this time.
const COUNTED: Duration = Duration::from_secs(2);

const OPEN: &str = "begin isolation level repeatable read; select count(*) from tidegate.lane";
const DEAD: &str = "
    select sum(n_dead_tup)::bigint from pg_stat_user_tables where schemaname = 'tidegate'";

pub async fn measure(
    database: &Database,
    args: &RelayArgs,
    rows: &mut Vec<Row>,
    judge: &mut Judge,
) -> Result<()> {
    let deliveries = async || {
        let mut seconds = Vec::new();
        for _ in 0..args.repeat {
            seconds.push(deliver(database, args.messages).await?.0);
        }
        anyhow::Ok(median(seconds))
    };
    let before = deliveries().await?;
    let snapshot = connect(&database.url).await?;
    snapshot.batch_execute(OPEN).await?;
    let dead = dead(database).await?;
    let statements = age(&database.store).await?;
    let dead = self::dead(database).await? - dead;
    drain_rest(database).await?;
    let since = deliveries().await?;
    snapshot.batch_execute("commit").await?;
    rows.push(Row::new("relay, no snapshot is open", args.messages, before));
    let row = Row::new("relay, a snapshot is open", args.messages, since);
    rows.push(Row { ratio: Some(before / since), ..row });
    judge.check("snapshot is open / is not", Some(before / since), Bound::AtLeast, 0.9);
    let per_statement = dead as f64 / statements as f64;
    judge.check("dead rows per statement", Some(per_statement), Bound::AtMost, 1.0);
    Ok(())
}

async fn dead(database: &Database) -> Result<i64> {
    sleep(COUNTED).await;
    Ok(database.client.query_one(DEAD, &[]).await?.get(0))
}

/// Delivers messages as they come in, one by one. Returns how many statements that took.
async fn age(store: &OpenStore) -> Result<u64> {
    let sink = Arc::new(Counting { group: 1_000, ..Counting::default() });
    let options = RelayOptions::new(worker_id());
    let relay = Relay::new(store.outbox_store(), plan(&[("counting", "*", sink)]), options)?;
    let stop = Stop::new();
    let running = tokio::spawn({
        let stop = stop.clone();
        async move { relay.run(stop).await }
    });
    let (before, until) = (store.statements(), Instant::now() + AGE);
    let mut published = 0;
    while Instant::now() < until {
        publish(store, 1, |_| "bench".to_owned()).await?;
        published += 1;
    }
    stop.stop();
    running.await.context("the relay ended")??;
    Ok(store.statements() - before - published)
}
