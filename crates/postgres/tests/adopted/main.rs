//! Tables that people already have, through a whole relay.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod brighter;
mod by_state;
mod conformance;
mod encodings;
mod failures;
mod lease;
mod many;
mod named;
mod presets;
#[allow(dead_code, reason = "the tests of relays use more of it")]
#[path = "../relay/server.rs"]
mod server;
mod sink;
#[path = "../support/mod.rs"]
mod support;
mod table;

use sink::Fake;
use std::{sync::Arc, time::Duration};
use support::{Database, POSTGRES};
use tidegate_core::{
    RetryPolicy, WorkerId,
    outbox::{Pattern, Route},
};
use tidegate_engine::{
    Relay, RelayOptions, Stop,
    relay::{Counts, Plan, PlannedSink, TopicPolicy},
};
use tidegate_postgres::{
    Adopted,
    adopted::{Mapping, Preset},
};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

const ENTITY_OUTBOX: &str = "create table entity_outbox (
    outbox_id uuid primary key default gen_random_uuid(), repository_id uuid not null,
    entity_id varchar(64) not null, operation varchar(10) not null, target_store varchar(32) not null,
    payload jsonb, created_at timestamptz not null default now(), processed_at timestamptz,
    retry_count int not null default 0, last_error text, collection_name varchar(255))";

/// A database with the schema, and a table of somebody else.
async fn database(ddl: &str) -> Database {
    let database = Database::create(POSTGRES).await;
    database.store().await;
    database.execute(ddl).await;
    database
}

async fn entities() -> Database {
    database(ENTITY_OUTBOX).await
}

/// Rows for one entity, one after the other, each with an operation and a payload.
async fn write(database: &Database, entity: &str, rows: &[(&str, &str)]) {
    for (operation, text) in rows {
        let sql = format!(
            "insert into entity_outbox (repository_id, entity_id, operation, target_store, payload,
                created_at, collection_name)
            values ('00000000-0000-0000-0000-000000000001', '{entity}', '{operation}', 'qdrant',
                '{{\"text\": \"{text}\"}}', clock_timestamp(), 'people')"
        );
        database.execute(&sql).await;
    }
}

/// What `write` makes of an entity.
fn key(entity: &str) -> String {
    format!("00000000-0000-0000-0000-000000000001:{entity}")
}

async fn adopt(database: &Database, mapping: Mapping) -> Arc<Adopted> {
    Arc::new(Adopted::open(database.url().as_str(), mapping).await.unwrap())
}

async fn adopt_entities(database: &Database) -> Arc<Adopted> {
    adopt(database, Mapping::of(Preset::EntityOutbox)).await
}

/// Tries three times, without much of a pause.
fn impatient() -> TopicPolicy {
    let (base, cap) = (Duration::from_millis(20), Duration::from_millis(20));
    TopicPolicy { retry: RetryPolicy { max_attempts: 3, base, cap }, ..TopicPolicy::default() }
}

fn plan(sinks: &[(&str, &Arc<Fake>)], policy: TopicPolicy) -> Plan {
    let sink = |(topics, sink): &(&str, &Arc<Fake>)| PlannedSink {
        name: format!("to {topics}"),
        sink: (*sink).clone(),
        pacer: tidegate_pacer::Options::default(),
    };
    let route = |(topics, _): &(&str, &Arc<Fake>)| Route {
        topics: Pattern((*topics).to_owned()),
        sink: format!("to {topics}"),
    };
    Plan {
        sinks: sinks.iter().map(sink).collect(),
        routes: sinks.iter().map(route).collect(),
        policies: vec![(Pattern("*".to_owned()), policy)],
    }
}

fn relay(adopted: &Arc<Adopted>, plan: Plan, options: RelayOptions) -> Relay {
    Relay::new(adopted.clone(), plan, options).unwrap()
}

fn options(name: &str) -> RelayOptions {
    RelayOptions {
        lease: Duration::from_secs(2),
        poll: Duration::from_millis(20),
        ..RelayOptions::new(WorkerId(name.to_owned()))
    }
}

/// Relays until nothing is left that can be delivered.
async fn drain(adopted: &Arc<Adopted>, plan: Plan) -> Counts {
    let options = RelayOptions { drain: true, ..options("drainer") };
    let relay = relay(adopted, plan, options);
    tokio::time::timeout(LONG, relay.run(Stop::new())).await.unwrap().unwrap().counts
}

/// Relays everything to one sink.
async fn drain_to(adopted: &Arc<Adopted>, sink: &Arc<Fake>) -> Counts {
    drain(adopted, plan(&[("*", sink)], impatient())).await
}

/// Waits until a query gives this, as the rows of one column.
async fn until(database: &Database, sql: &str, expected: &[&str]) {
    let client = database.client().await;
    let wait = async {
        loop {
            let rows = client.query(sql, &[]).await.unwrap();
            let found: Vec<String> = rows.iter().map(|row| row.get::<_, String>(0)).collect();
            if found == expected {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONG, wait).await.unwrap_or_else(|_| panic!("never: {sql}"));
}
