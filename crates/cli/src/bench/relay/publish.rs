//! What publishing costs an application: commits per second of many writers, beside a plain insert of the
//! same row.

use super::{
    Row,
    database::Database,
    median,
    throughput::{drain_rest, json},
};
use crate::bench::{
    meter::connect,
    report::{Bound, Judge},
};
use anyhow::Result;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use tokio::{task::JoinSet, time::sleep};
use tokio_postgres::{Client, Statement, types::ToSql};

const WRITERS: usize = 16;
/// The two that are compared take turns, now one first and now the other, so that both have the same share of
/// what else the machine does. Turns are short: with 250 ms, two that were the same differed by up to 4 %.
const TURNS: u32 = 400;
const TURN: Duration = Duration::from_millis(50);

const CREATE: &str = "
    create table if not exists plain (
        id bigint generated always as identity primary key,
        published_at timestamptz not null default now(),
        not_before timestamptz,
        topic text not null,
        key text,
        payload bytea not null,
        headers jsonb
    )";

/// A way to publish, and a plain insert of the same row.
struct Way {
    name: &'static str,
    publish: &'static str,
    plain: &'static str,
    /// A payload of 1 KB, as its statements take it.
    payload: fn() -> Payload,
}

type Payload = Arc<dyn ToSql + Send + Sync>;

const WAYS: [Way; 2] = [
    Way {
        name: "publish",
        publish: "select tidegate.publish($1, $2, $3::text::jsonb)",
        plain: "insert into plain (topic, key, payload)
            values ($1, $2, convert_to($3::text::jsonb::text, 'UTF8')) returning id",
        payload: || Arc::new(json()),
    },
    Way {
        name: "publish_bytes",
        publish: "select tidegate.publish_bytes($1, $2, $3)",
        plain: "insert into plain (topic, key, payload) values ($1, $2, $3) returning id",
        payload: || Arc::new(json().into_bytes()),
    },
];

pub async fn measure(
    database: &Database,
    repeat: usize,
    rows: &mut Vec<Row>,
    judge: &mut Judge,
) -> Result<()> {
    database.client.batch_execute(CREATE).await?;
    for way in WAYS {
        let (mut plain, mut published, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..repeat {
            let (one, other) = side_by_side(database, &way).await?;
            ratios.push(other / one);
            plain.push(one);
            published.push(other);
        }
        let row = |what: &str, per_second: f64| {
            let seconds = (TURN * TURNS).as_secs_f64();
            let name = format!("{what}, {WRITERS} writers");
            Row::new(name, (per_second * seconds) as u64, seconds)
        };
        let (name, ratio) = (way.name, median(ratios));
        rows.push(row(&format!("plain insert for {name}"), median(plain)));
        rows.push(Row { ratio: Some(ratio), ..row(name, median(published)) });
        let figure = format!("{name} / plain insert, commits");
        judge.check(&figure, Some(ratio), Bound::AtLeast, 0.85);
    }
    database.client.batch_execute("drop table plain").await?;
    drain_rest(database).await
}

/// Commits per second of plain inserts, and of publishing.
async fn side_by_side(database: &Database, way: &Way) -> Result<(f64, f64)> {
    let plain = Writers::open(database, way.plain, way.payload).await?;
    let publish = Writers::open(database, way.publish, way.payload).await?;
    let (mut inserted, mut published) = (0.0, 0.0);
    for turn in 0..TURNS {
        if turn.is_multiple_of(2) {
            inserted += plain.write().await?;
            published += publish.write().await?;
        } else {
            published += publish.write().await?;
            inserted += plain.write().await?;
        }
    }
    Ok((inserted / f64::from(TURNS), published / f64::from(TURNS)))
}

/// Many writers, each with a connection of its own and a transaction per message.
struct Writers {
    writers: Vec<Arc<Writer>>,
    stop: Arc<AtomicBool>,
}

struct Writer {
    client: Client,
    statement: Statement,
    number: usize,
    payload: Payload,
}

impl Writers {
    /// Connects them. All have written once: a session's first statements are prepared and compiled.
    async fn open(database: &Database, sql: &str, payload: fn() -> Payload) -> Result<Self> {
        let mut writers = Vec::new();
        for number in 0..WRITERS {
            let client = connect(&database.url).await?;
            let statement = client.prepare(sql).await?;
            writers.push(Arc::new(Writer { client, statement, number, payload: payload() }));
        }
        let writers = Self { writers, stop: Arc::default() };
        writers.write().await?;
        Ok(writers)
    }

    /// One turn. Returns commits per second.
    async fn write(&self) -> Result<f64> {
        self.stop.store(false, Relaxed);
        let start = Instant::now();
        let mut turns = JoinSet::new();
        for writer in &self.writers {
            turns.spawn(writer.clone().write(self.stop.clone()));
        }
        sleep(TURN).await;
        self.stop.store(true, Relaxed);
        let mut commits = 0;
        while let Some(turn) = turns.join_next().await {
            commits += turn??;
        }
        Ok(commits as f64 / start.elapsed().as_secs_f64())
    }
}

impl Writer {
    /// Writes until it is to stop. Returns how often.
    async fn write(self: Arc<Self>, stop: Arc<AtomicBool>) -> Result<u64, tokio_postgres::Error> {
        let mut commits = 0;
        while !stop.load(Relaxed) {
            let key = format!("key-{}-{}", self.number, commits % 100);
            self.client.query_one(&self.statement, &[&"bench", &key, &*self.payload]).await?;
            commits += 1;
        }
        Ok(commits)
    }
}
