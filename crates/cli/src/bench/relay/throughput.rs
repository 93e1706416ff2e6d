//! PostgreSQL to a sink that counts, with few and with many messages waiting.

use super::{
    RelayArgs, Row,
    database::Database,
    median,
    sink::{Counting, plan},
};
use crate::bench::report::{Bound, Judge};
use anyhow::{Result, ensure};
use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Instant,
};
use tidegate::{
    NewMessage, OpenStore, Stop,
    relay::{Plan, Relay, RelayOptions},
    worker_id,
};

const FEW: u64 = 2_000;
const PAYLOAD: usize = 1_024;
const KEYS: u64 = 1_000;
/// Messages that are published in one statement.
const CHUNK: u64 = 1_000;

pub async fn measure(
    database: &Database,
    args: &RelayArgs,
    rows: &mut Vec<Row>,
    judge: &mut Judge,
) -> Result<()> {
    let mut rates = Vec::new();
    for waiting in [FEW, args.messages] {
        let mut measured = Vec::new();
        for _ in 0..args.repeat {
            measured.push(deliver(database, waiting).await?);
        }
        let seconds = median(measured.iter().map(|it| it.seconds).collect());
        let statements = median(measured.iter().map(|it| it.statements).collect());
        let name = format!("relay, {waiting} waiting");
        let row =
            Row { statements_per_message: Some(statements), ..Row::new(name, waiting, seconds) };
        rates.push(row.per_second);
        rows.push(row);
    }
    let statements = rows.last().and_then(|row| row.statements_per_message);
    judge.check("messages per second, 1 KB", rates.last().copied(), Bound::AtLeast, 50_000.0);
    judge.check("many waiting / few", Some(rates[1] / rates[0]), Bound::AtLeast, 1.0);
    judge.check("statements per message", statements, Bound::AtMost, 0.01);
    Ok(())
}

/// What delivering took.
pub struct Delivered {
    pub seconds: f64,
    /// Of these, how many went by before the first message came.
    pub to_first: f64,
    /// Per message.
    pub statements: f64,
}

/// Publishes messages, and delivers them.
pub async fn deliver(database: &Database, messages: u64) -> Result<Delivered> {
    publish(&database.store, messages, |_| "bench".to_owned()).await?;
    let sink = Arc::new(Counting { group: 1_000, ..Counting::default() });
    let (statements, start) = (database.store.statements(), Instant::now());
    let seconds = drain(&database.store, plan(&[("counting", "*", sink.clone())])).await?;
    let statements = database.store.statements() - statements;
    ensure!(sink.seen.load(Relaxed) == messages, "not every message was delivered once");
    let first = sink.first.get().copied().unwrap_or(start);
    let to_first = (first - start).as_secs_f64();
    Ok(Delivered { seconds, to_first, statements: statements as f64 / messages as f64 })
}

/// A payload of 1 KB.
pub fn json() -> String {
    format!("{{\"text\":\"{}\"}}", "x".repeat(PAYLOAD - 11))
}

/// Publishes messages of 1 KB over some keys.
pub async fn publish(
    store: &OpenStore,
    messages: u64,
    topic: impl Fn(u64) -> String,
) -> Result<()> {
    let payload = json().into_bytes();
    for first in (0..messages).step_by(CHUNK as usize) {
        let message = |n: u64| NewMessage {
            topic: topic(n),
            key: Some(format!("key-{}", n % KEYS)),
            payload: payload.clone(),
            ..NewMessage::default()
        };
        store.publish((first..messages.min(first + CHUNK)).map(message).collect()).await?;
    }
    Ok(())
}

/// Delivers all that waits. Returns how long that took.
pub async fn drain(store: &OpenStore, plan: Plan) -> Result<f64> {
    let options = RelayOptions { drain: true, ..RelayOptions::new(worker_id()) };
    let relay = Relay::new(store.outbox_store(), plan, options)?;
    let start = Instant::now();
    relay.run(Stop::new()).await?;
    Ok(start.elapsed().as_secs_f64())
}

/// Delivers what a measurement left over, so that the next does not find it.
pub async fn drain_rest(database: &Database) -> Result<()> {
    let rest = Arc::new(Counting { group: 1_000, ..Counting::default() });
    drain(&database.store, plan(&[("rest", "*", rest)])).await?;
    Ok(())
}
