//! What publishing costs an application: commits per second of many writers, beside a plain insert of the
//! same row.

use super::{Row, database::Database, median, throughput::drain_rest};
use crate::bench::{
    meter::connect,
    report::{Bound, Judge},
};
use anyhow::Result;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use tokio::{task::JoinSet, time::sleep};

const WRITERS: usize = 16;
const LASTS: Duration = Duration::from_secs(3);

const CREATE: &str = "
    create table if not exists plain (
        id bigint generated always as identity primary key,
        published_at timestamptz not null default now(),
        not_before timestamptz,
        lane smallint not null,
        segment smallint not null,
        topic text not null,
        key text,
        payload bytea not null,
        headers jsonb
    )";
const PLAIN: &str = "
    insert into plain (lane, segment, topic, key, payload) values (1, 0, $1, $2, $3) returning id";
const PUBLISH: &str = "select tidegate.publish_bytes($1, $2, $3)";

pub async fn measure(
    database: &Database,
    repeat: usize,
    rows: &mut Vec<Row>,
    judge: &mut Judge,
) -> Result<()> {
    database.client.batch_execute(CREATE).await?;
    let (mut plain, mut published, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..repeat {
        let (one, other) = (write(database, PLAIN).await?, write(database, PUBLISH).await?);
        ratios.push(other / one);
        plain.push(one);
        published.push(other);
    }
    let row = |name: &str, per_second: f64| {
        let seconds = LASTS.as_secs_f64();
        Row::new(name, (per_second * seconds) as u64, seconds)
    };
    let ratio = median(ratios);
    rows.push(row("plain insert, 16 writers", median(plain)));
    rows.push(Row { ratio: Some(ratio), ..row("publish, 16 writers", median(published)) });
    judge.check("publish / plain insert, commits", Some(ratio), Bound::AtLeast, 0.9);
    database.client.batch_execute("truncate plain").await?;
    drain_rest(database).await
}

/// Many writers, each with a connection of its own and a transaction per message. Returns commits per
/// second.
async fn write(database: &Database, sql: &'static str) -> Result<f64> {
    let (stop, commits) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let client = connect(&database.url).await?;
        let statement = client.prepare(sql).await?;
        let (stop, commits) = (stop.clone(), commits.clone());
        writers.spawn(async move {
            let payload = vec![b'1'; 1_024];
            let mut n = 0_u64;
            while !stop.load(Relaxed) {
                let key = format!("key-{writer}-{}", n % 100);
                client.query_one(&statement, &[&"bench", &key, &payload]).await?;
                commits.fetch_add(1, Relaxed);
                n += 1;
            }
            Ok::<(), tokio_postgres::Error>(())
        });
    }
    let start = Instant::now();
    sleep(LASTS).await;
    let (written, seconds) = (commits.load(Relaxed), start.elapsed().as_secs_f64());
    stop.store(true, Relaxed);
    while let Some(writer) = writers.join_next().await {
        writer??;
    }
    Ok(written as f64 / seconds)
}
