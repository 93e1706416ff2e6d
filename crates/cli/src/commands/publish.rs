//! `tidegate publish`: messages from the command line.

use crate::{app::App, args::outbox::PublishArgs, exit::Exit, out, outbox};
use anyhow::{Context, Result, anyhow};
use serde_json::json;
use std::{
    io::{self, BufRead, Read},
    sync::Arc,
};
use tidegate::{Headers, MessageId, NewMessage, OutboxStore, limits::MAX_PAYLOAD_BYTES};

/// Lines that are published in one transaction, unless the store takes fewer.
const LINES: usize = 1_000;

/// Publishes one message, or one per line.
pub async fn run(app: &App, args: PublishArgs) -> Result<Exit> {
    let mut message = NewMessage {
        topic: args.topic,
        key: args.key,
        headers: args.header.iter().map(|header| parse(header)).collect::<Result<Headers>>()?,
        delay: args.delay.map(|span| span.0),
        ..NewMessage::default()
    };
    if args.lines {
        let store = open(app).await?;
        return publish_lines(app, &*store, &message).await;
    }
    message.payload = match args.payload {
        Some(payload) => payload.into_bytes(),
        None => stdin()?,
    };
    message.check()?;
    let ids = open(app).await?.publish(vec![message]).await?;
    say(app, &ids)
}

/// Opens the store, and makes it if it is not there yet. An adopted table says that it is its application's.
async fn open(app: &App) -> Result<Arc<dyn OutboxStore>> {
    match outbox::table(app, None).await? {
        Some(adopted) => Ok(adopted),
        None => Ok(app.open_outbox_or_create().await?.outbox_store()),
    }
}

fn parse(header: &str) -> Result<(String, String)> {
    let (name, value) = header
        .split_once(':')
        .ok_or_else(|| anyhow!("`{header}` is no header: write --header 'name: value'"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// All of stdin, without the line break that a shell adds; not more than can be published.
fn stdin() -> Result<Vec<u8>> {
    let mut payload = Vec::new();
    let most = MAX_PAYLOAD_BYTES as u64 + 2;
    io::stdin().lock().take(most).read_to_end(&mut payload).context("cannot read stdin")?;
    if payload.ends_with(b"\n") {
        payload.pop();
    }
    Ok(payload)
}

/// Each part is one transaction: what was published before an error stays.
async fn publish_lines(app: &App, store: &dyn OutboxStore, like: &NewMessage) -> Result<Exit> {
    let mut lines = io::stdin().lock().lines();
    let most = store.outbox_capabilities().largest_transaction.unwrap_or(LINES).min(LINES);
    let (mut published, mut number) = (0, 0);
    loop {
        let mut messages = Vec::new();
        for line in lines.by_ref().take(most) {
            number += 1;
            let line = line.context("cannot read stdin")?;
            if line.trim().is_empty() {
                continue;
            }
            let message = NewMessage { payload: line.into_bytes(), ..like.clone() };
            message
                .check()
                .with_context(|| format!("line {number}; {published} were published"))?;
            messages.push(message);
        }
        if messages.is_empty() {
            break;
        }
        published += store
            .publish(messages)
            .await
            .with_context(|| format!("{published} lines were published"))?
            .len();
    }
    if app.json {
        out::json(&json!({ "published": published }))?;
    }
    app.say(&format!("published {published}"));
    Ok(Exit::Done)
}

fn say(app: &App, ids: &[MessageId]) -> Result<Exit> {
    match app.json {
        true => out::json(&json!({ "ids": ids }))?,
        false => ids.iter().try_for_each(|id| out::data(&format!("{id}\n")))?,
    }
    Ok(Exit::Done)
}
