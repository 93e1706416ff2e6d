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
    outbox::{Selection, Stored, Stuck, StuckQuery, StuckState},
};

/// Shows a message, and what became of it.
pub async fn run(app: &App, store: &dyn OutboxStore, id: MessageId) -> Result<Exit> {
    let Some(stored) = store.message(id.clone()).await? else {
        bail!(
            "message {id} is not stored: it was never published, or was removed after it was sent"
        );
    };
    let which = Selection { ids: Some(vec![id]), ..Selection::default() };
    let query = StuckQuery { which, limit: 1, ..StuckQuery::default() };
    let stuck = store.stuck(query).await?.pop();
    match app.json {
        true => out::json(&as_json(&stored, stuck.as_ref()))?,
        false => out::data(&as_text(&stored, stuck.as_ref()))?,
    }
    Ok(Exit::Done)
}

fn text(message: &Message) -> Option<&str> {
    str::from_utf8(&message.payload).ok()
}

fn state(stored: &Stored, stuck: Option<&Stuck>) -> &'static str {
    match stuck {
        Some(stuck) => stuck.state.as_str(),
        None if stored.sent => "sent",
        None => "outstanding",
    }
}

fn as_json(stored: &Stored, stuck: Option<&Stuck>) -> Value {
    let message = &stored.message;
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
        "state": state(stored, stuck),
        "sink": stuck.map(|it| &it.sink),
        "attempts": stuck.map(|it| it.attempts),
        "reason": stuck.map(|it| &it.reason),
    })
}

fn as_text(stored: &Stored, stuck: Option<&Stuck>) -> String {
    let message = &stored.message;
    let mut lines = vec![
        format!("message    {} ({})", message.id, message.name),
        format!("topic      {}", message.topic),
    ];
    lines.extend(message.key.as_ref().map(|key| format!("key        {key}")));
    lines.push(format!("published  {} ago", ago(message.published_ms)));
    let due = stuck.and_then(|it| it.due_in).map(|due| format!(", due in {}", span(due)));
    lines.push(format!("state      {}{}", state(stored, stuck), due.unwrap_or_default()));
    if let Some(stuck) = stuck {
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
