//! `tidegate outbox status`

use crate::{
    app::App,
    exit::Exit,
    out,
    show::{
        number::{count, rate, span},
        table::table,
    },
};
use anyhow::Result;
use serde_json::json;
use std::time::{Duration, Instant};
use tidegate::{
    OutboxStore,
    outbox::{OutboxStatus, SinkTrouble},
};
use tokio::time::sleep;

/// How long the outbox is watched to tell when it will be empty.
const WATCHED: Duration = Duration::from_secs(1);

/// Shows how the outbox stands, and when it will be empty.
pub async fn run(app: &App, store: &dyn OutboxStore) -> Result<Exit> {
    let before = store.outstanding().await?;
    let start = Instant::now();
    let status = store.outbox().await?;
    let outstanding: u64 = status.topics.iter().map(|topic| topic.outstanding).sum();
    let drain = match outstanding > 0 && !status.relays.is_empty() {
        true => {
            sleep(WATCHED).await;
            let now = store.outstanding().await?;
            let gone = before.messages.saturating_sub(now.messages) as f64;
            Some(gone / start.elapsed().as_secs_f64()).filter(|per_second| *per_second >= 0.5)
        }
        false => None,
    };
    match app.json {
        true => print_json(&status, outstanding, drain)?,
        false => print(app, &status, outstanding, drain)?,
    }
    Ok(Exit::Done)
}

fn drain_time(outstanding: u64, per_second: f64) -> Duration {
    Duration::from_secs_f64(outstanding as f64 / per_second)
}

fn print_json(status: &OutboxStatus, outstanding: u64, drain: Option<f64>) -> Result<()> {
    let seconds = |age: Option<Duration>| age.map(|age| age.as_secs_f64());
    let topics = status.topics.iter().map(|topic| {
        json!({
            "topic": topic.topic,
            "outstanding": topic.outstanding,
            "retrying": topic.retrying,
            "waiting": topic.waiting,
            "unrouted": topic.unrouted,
            "dead": topic.dead,
            "oldest_seconds": seconds(topic.oldest),
        })
    });
    let holder = status.holder.as_ref();
    out::json(&json!({
        "outstanding": outstanding,
        "limit": status.limit,
        "drain_seconds": drain.map(|rate| drain_time(outstanding, rate).as_secs_f64()),
        "topics": topics.collect::<Vec<_>>(),
        "relays": status.relays,
        "sinks": status.sinks.iter().map(sink_json).collect::<Vec<_>>(),
        "holder": holder.map(|it| json!({ "name": it.name, "seconds": it.age.as_secs_f64() })),
    }))?;
    Ok(())
}

fn sink_json(sink: &SinkTrouble) -> serde_json::Value {
    json!({
        "sink": sink.sink,
        "state": "down",
        "reason": sink.reason,
        "seconds": sink.lasts.as_secs_f64(),
        "relays": sink.relays,
    })
}

fn print(app: &App, status: &OutboxStatus, outstanding: u64, drain: Option<f64>) -> Result<()> {
    if status.topics.is_empty() {
        app.say("nothing is outstanding, nothing is dead");
    } else {
        let headings =
            ["topic", "outstanding", "retrying", "waiting", "unrouted", "dead", "oldest"];
        let rows = status.topics.iter().map(|topic| {
            [
                topic.topic.clone(),
                count(topic.outstanding),
                count(topic.retrying),
                count(topic.waiting),
                count(topic.unrouted),
                count(topic.dead),
                topic.oldest.map(span).unwrap_or_default(),
            ]
        });
        out::data(&table(headings, 1, rows.collect()))?;
    }
    let lanes = |relay: &tidegate::outbox::RelayStatus| {
        format!("{} ({} lanes)", relay.relay.0, relay.lanes)
    };
    let relays: Vec<String> = status.relays.iter().map(lanes).collect();
    app.say(&match relays.len() {
        0 => "no relay is running: start one with `tidegate relay`".to_owned(),
        _ => format!("relays: {}", relays.join(", ")),
    });
    for sink in &status.sinks {
        app.say(&troubled(sink));
    }
    if let Some(per_second) = drain {
        let time = span(drain_time(outstanding, per_second));
        app.say(&format!("empty in about {time}, at {}", rate(per_second)));
    }
    if let Some(limit) = status.limit {
        app.say(&format!("messages are refused while {} or more are outstanding", count(limit)));
    }
    if let Some(holder) = &status.holder {
        let age = span(holder.age);
        app.say(&format!(
            "{} has been open for {age}: younger messages are not read before it ends",
            holder.name
        ));
    }
    Ok(())
}

/// What is wrong with a sink or one of its destinations, and for how long.
pub fn troubled(sink: &SinkTrouble) -> String {
    let (name, lasts) = (out::harmless(&sink.sink), span(sink.lasts));
    format!("the sink {name} has been in trouble for {lasts}: {}", out::harmless(&sink.reason))
}
