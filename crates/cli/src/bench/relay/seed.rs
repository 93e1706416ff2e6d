//! Collection by collection: one query for the collections, then one transaction for each, held open while
//! its messages are sent. Kept here to be compared with, and nowhere else.

use super::{
    Row,
    database::Database,
    median,
    sink::{Counting, plan},
    throughput::{drain, publish},
};
use crate::bench::{
    meter::connect,
    report::{Bound, Judge},
};
use anyhow::{Result, ensure};
use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};
use tidegate::{
    Headers, Sink,
    sink::{Delivery, Item},
};
use tokio_postgres::Client;

const MESSAGES: u64 = 10_000;
/// Messages of one request, for both.
const GROUP: usize = 100;
/// How long a request takes, for both: a vector store that confirms its writes.
const TAKES: Duration = Duration::from_millis(5);

const CREATE: &str = "
    drop table if exists entity_outbox;
    create table entity_outbox (
        outbox_id uuid primary key default gen_random_uuid(),
        repository_id uuid not null default gen_random_uuid(),
        entity_id varchar(64) not null,
        operation varchar(10) not null,
        target_store varchar(32) not null,
        payload jsonb not null,
        created_at timestamptz not null default clock_timestamp(),
        processed_at timestamptz,
        retry_count int not null default 0,
        last_error text,
        collection_name varchar(255) not null
    );
    create index on entity_outbox (target_store, collection_name, created_at)
        where processed_at is null;";
const FILL: &str = "
    insert into entity_outbox (entity_id, operation, target_store, payload, collection_name)
    select 'entity-' || n % 1000, 'INSERT', 'qdrant', jsonb_build_object('text', repeat('x', 1000)),
        'collection-' || n % $2::bigint
    from generate_series(1, $1::bigint) as n";
const COLLECTIONS: &str = "
    select distinct collection_name from entity_outbox
    where target_store = 'qdrant' and processed_at is null limit 100";
const LOCK: &str = "
    select outbox_id::text, entity_id, operation, payload::text
    from entity_outbox
    where target_store = 'qdrant' and collection_name = $1 and processed_at is null
    order by created_at limit $2 for update skip locked";
const DONE: &str =
    "update entity_outbox set processed_at = now() where outbox_id = any ($1::text[]::uuid[])";

pub async fn measure(
    database: &Database,
    repeat: usize,
    rows: &mut Vec<Row>,
    judge: &mut Judge,
) -> Result<()> {
    let mut client = connect(&database.url).await?;
    for collections in [1, 10, 100] {
        let (mut seed, mut own) = (Vec::new(), Vec::new());
        for _ in 0..repeat {
            seed.push(two_queries(&mut client, collections).await?);
            own.push(tidegate(database, collections).await?);
        }
        let (seed, own) = (median(seed), median(own));
        let ratio = seed / own;
        rows.push(Row::new(format!("two queries, {collections} collections"), MESSAGES, seed));
        let name = format!("relay, {collections} collections");
        rows.push(Row { ratio: Some(ratio), ..Row::new(name, MESSAGES, own) });
        match collections {
            1 => judge.check("relay / two queries, 1 collection", Some(ratio), Bound::AtLeast, 1.0),
            100 => {
                judge.check(
                    "relay / two queries, 100 collections",
                    Some(ratio),
                    Bound::AtLeast,
                    10.0,
                );
            }
            _ => {}
        }
    }
    Ok(())
}

fn counting() -> Arc<Counting> {
    Arc::new(Counting { group: GROUP, takes: TAKES, by_topic: true, ..Counting::default() })
}

async fn tidegate(database: &Database, collections: u64) -> Result<f64> {
    publish(&database.store, MESSAGES, |n| format!("collection-{}", n % collections)).await?;
    let sink = counting();
    let seconds = drain(&database.store, plan(&[("sink", "*", sink.clone())])).await?;
    ensure!(sink.seen.load(Relaxed) == MESSAGES, "not every message was delivered once");
    Ok(seconds)
}

async fn two_queries(client: &mut Client, collections: u64) -> Result<f64> {
    client.batch_execute(CREATE).await?;
    client.execute(FILL, &[&(MESSAGES as i64), &(collections as i64)]).await?;
    client.batch_execute("analyze entity_outbox").await?;
    let (find, lock, done) = (
        client.prepare(COLLECTIONS).await?,
        client.prepare(LOCK).await?,
        client.prepare(DONE).await?,
    );
    let sink = counting();
    let start = Instant::now();
    loop {
        let found = client.query(&find, &[]).await?;
        if found.is_empty() {
            break;
        }
        for row in found {
            let collection: &str = row.get(0);
            let transaction = client.transaction().await?;
            let entries = transaction.query(&lock, &[&collection, &(GROUP as i64)]).await?;
            let ids: Vec<&str> = entries.iter().map(|entry| entry.get(0)).collect();
            let item = |entry: &'_ tokio_postgres::Row| -> (String, String) {
                (entry.get(0), entry.get(3))
            };
            let read: Vec<(String, String)> = entries.iter().map(item).collect();
            let items: Vec<Item<'_>> = read
                .iter()
                .map(|(id, payload)| Item {
                    topic: collection,
                    headers: Headers::none(),
                    ..Item::record(id, payload)
                })
                .collect();
            sink.deliver(Delivery { connection: 0, items: &items }).await;
            transaction.execute(&done, &[&ids]).await?;
            transaction.commit().await?;
        }
    }
    ensure!(sink.seen.load(Relaxed) == MESSAGES, "the two-query design lost messages");
    Ok(start.elapsed().as_secs_f64())
}
