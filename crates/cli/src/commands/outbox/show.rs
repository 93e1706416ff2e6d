//! `tidegate outbox show`

use crate::{
    app::App,
    exit::Exit,
    out,
    show::{number::span, status::ago},
};
use anyhow::{Result, bail};
use serde_json::{Value, json};
use tidegate::{
    Message, MessageId, OutboxStore,
    outbox::{Selection, Stuck, StuckQuery, StuckState},
};

/// Shows a message, and what became of it if it is not simply done.
pub async fn run(app: &App, store: &dyn OutboxStore, id: MessageId) -> Result<Exit> {
    let Some(message) = store.message(id).await? else {
        bail!(
            "message {id} is not stored: it was never published, or was removed after it was sent"
        );
    };
    let which = Selection { ids: Some(vec![id]), ..Selection::default() };
    let query = StuckQuery { which, limit: 1, ..StuckQuery::default() };
    let stuck = store.stuck(query).await?.pop();
    match app.json {
        true => out::json(&as_json(&message, stuck.as_ref()))?,
        false => out::data(&as_text(&message, stuck.as_ref()))?,
    }
    Ok(Exit::Done)
}

fn text(message: &Message) -> Option<&str> {
    str::from_utf8(&message.payload).ok()
}

fn as_json(message: &Message, stuck: Option<&Stuck>) -> Value {
    let parsed = serde_json::from_slice::<Value>(&message.payload).ok();
    json!({
        "id": message.id,
        "name": message.name,
        "topic": message.topic,
        "key": message.key,
        "lane": message.lane.0,
        "published_ms": message.published_ms,
        "headers": message.headers,
        "payload": parsed.filter(|_| message.headers.declares_json()),
        "text": text(message),
        "bytes": message.payload.len(),
        "state": stuck.map(|it| it.state),
        "sink": stuck.map(|it| &it.sink),
        "attempts": stuck.map(|it| it.attempts),
        "reason": stuck.map(|it| &it.reason),
    })
}

fn as_text(message: &Message, stuck: Option<&Stuck>) -> String {
    let mut lines = vec![
        format!("message    {} ({})", message.id, message.name),
        format!("topic      {}", message.topic),
    ];
    lines.extend(message.key.as_ref().map(|key| format!("key        {key}")));
    lines.push(format!("published  {} ago", ago(message.published_ms)));
    if let Some(stuck) = stuck {
        let due = stuck.due_in.map(|due| format!(", due in {}", span(due))).unwrap_or_default();
        lines.push(format!("state      {}{due}", stuck.state.as_str()));
        if stuck.state != StuckState::Unrouted {
            lines.push(format!("sink       {}", stuck.sink));
        }
        lines.push(format!("attempts   {}", stuck.attempts));
        if !stuck.reason.is_empty() {
            lines.push(format!("reason     {}", stuck.reason));
        }
    }
    lines.extend(message.headers.iter().map(|(name, value)| format!("header     {name}: {value}")));
    let lines: Vec<String> = lines.iter().map(|line| out::harmless(line)).collect();
    let payload = match text(message) {
        Some(text) => text.split('\n').map(out::harmless).collect::<Vec<_>>().join("\n"),
        None => format!("({} bytes that are no text)", message.payload.len()),
    };
    format!("{}\n\n{payload}\n", lines.join("\n"))
}
