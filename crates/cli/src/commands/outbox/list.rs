//! `tidegate outbox dead` and `tidegate outbox list`

use crate::{
    app::App,
    args::outbox::WhichFlags,
    exit::Exit,
    out,
    show::{
        number::{count, span},
        table::table,
    },
};
use anyhow::Result;
use serde_json::json;
use tidegate::{
    OutboxStore,
    outbox::{Selection, Stuck, StuckQuery, StuckState},
};

/// Reasons are cut to this in tables.
const REASON: usize = 60;

/// Lists the dead, grouped by reason.
pub async fn dead(app: &App, store: &dyn OutboxStore) -> Result<Exit> {
    let groups = store.dead_groups().await?;
    if app.json {
        out::json(&groups)?;
    } else if groups.is_empty() {
        app.say("no dead messages");
    } else {
        let rows = groups.iter().map(|group| {
            [
                group.topic.clone(),
                group.sink.clone(),
                cut(&group.reason),
                count(group.messages),
                group.first.to_string(),
                group.last.to_string(),
            ]
        });
        let headings = ["topic", "sink", "reason", "messages", "first", "last"];
        out::data(&table(headings, 3, rows.collect()))?;
        app.say("see `tidegate outbox show ID`, `retry` and `drop`");
    }
    Ok(Exit::Done)
}

/// Lists messages that were set aside.
pub async fn run(
    app: &App,
    store: &dyn OutboxStore,
    state: Option<StuckState>,
    which: WhichFlags,
    limit: usize,
) -> Result<Exit> {
    let query = StuckQuery { state, which: selection(which), limit, ..StuckQuery::default() };
    let stuck = store.stuck(query).await?;
    if app.json {
        out::json(&stuck.iter().map(as_json).collect::<Vec<_>>())?;
    } else if stuck.is_empty() {
        app.say("no such messages");
    } else {
        let headings = ["id", "topic", "key", "sink", "state", "reason", "attempts", "due in"];
        out::data(&table(headings, 6, stuck.iter().map(row).collect()))?;
    }
    Ok(Exit::Done)
}

/// What was asked for.
pub fn selection(which: WhichFlags) -> Selection {
    let WhichFlags { topic, sink, reason } = which;
    Selection { ids: None, topic, sink, reason }
}

fn as_json(stuck: &Stuck) -> serde_json::Value {
    json!({
        "id": stuck.id,
        "topic": stuck.topic,
        "key": stuck.key,
        "sink": stuck.sink,
        "state": stuck.state,
        "attempts": stuck.attempts,
        "reason": stuck.reason,
        "on_dead": stuck.then,
        "due_seconds": stuck.due_in.map(|due| due.as_secs_f64()),
    })
}

fn row(stuck: &Stuck) -> [String; 8] {
    [
        stuck.id.to_string(),
        stuck.topic.clone(),
        stuck.key.clone().unwrap_or_default(),
        stuck.sink.clone(),
        stuck.state.as_str().to_owned(),
        cut(&stuck.reason),
        stuck.attempts.to_string(),
        stuck.due_in.map(span).unwrap_or_default(),
    ]
}

fn cut(reason: &str) -> String {
    let line = reason.lines().next().unwrap_or_default();
    console::truncate_str(line, REASON, "…").into_owned()
}
