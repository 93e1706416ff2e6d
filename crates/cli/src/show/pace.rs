//! The pace of a load: where each connection stands, and what was decided.

use super::{number, table::table};
use crate::out;
use serde_json::{Value, json};
use std::time::Duration;
use tidegate::{
    load::Pace,
    outbox::SinkTrouble,
    pace::NotedPace,
    pacer::{Decision, Statistics, Time},
};

/// More decisions than this are only in the JSON.
const DECISIONS: usize = 20;

/// A process that writes nothing for so long is gone.
const SILENT: Duration = Duration::from_secs(10);

/// All of it, for programs.
pub fn json(noted: &NotedPace, pace: Option<&Pace>) -> Value {
    json!({
        "batch": noted.note.batch,
        "sink": noted.note.sink,
        "worker": noted.note.worker.0,
        "age_seconds": noted.age.as_secs_f64(),
        "pace": pace,
    })
}

/// A sink that is in trouble for relays, for programs.
pub fn of_relays(sink: &SinkTrouble) -> Value {
    json!({
        "batch": null,
        "sink": sink.sink,
        "relays": sink.relays,
        "trouble": { "seconds": sink.lasts.as_secs_f64(), "reason": sink.reason },
    })
}

/// The essence, for people.
pub fn text(noted: &NotedPace, pace: Option<&Pace>, progress: &str) -> String {
    let note = &noted.note;
    let title = out::strong(&format!("load {} to {}", note.batch, note.sink));
    let title = format!("{title}: {progress}");
    let Some(pace) = pace else {
        return format!("{title}\n  written by another version\n");
    };
    let state = match pace.running {
        true if noted.age < SILENT => "running",
        true => "ended without a word",
        false => "ended",
    };
    let sent = &pace.sent;
    let mut text = format!(
        "{title}\n  {} {state}, as of {} ago: {} requests, {} throttled ({}), {} without answer\n\n{}",
        note.worker.0,
        number::span(noted.age),
        number::count(sent.requests),
        number::count(sent.throttled),
        number::percent(sent.throttled, sent.requests),
        number::count(sent.timed_out + sent.unavailable),
        connections(&pace.statistics),
    );
    if let Some(stalled) = &pace.stalled {
        let time = number::span(Duration::from_secs(stalled.seconds));
        text += &format!("  no record was taken for {time}: {}\n", stalled.reason);
    }
    for statistics in &pace.statistics {
        text += &decisions(statistics);
    }
    text
}

fn connections(statistics: &[Statistics]) -> String {
    let headings = [
        "connection",
        "operation",
        "bound by",
        "in flight",
        "limit",
        "max",
        "ceiling",
        "rate",
        "round trip",
        "throttles",
    ];
    let rows = statistics.iter().map(|of| {
        [
            of.connection_name.clone(),
            of.class.clone(),
            of.binding.to_string(),
            of.in_flight.to_string(),
            of.limit.to_string(),
            of.max_parallelism.to_string(),
            of.ceiling.map_or("–".to_owned(), |ceiling| ceiling.to_string()),
            of.rate.map_or("–".to_owned(), number::rate),
            number::span(of.round_trip),
            number::count(of.total_throttle_events),
        ]
    });
    table(headings, 3, rows.collect())
}

fn decisions(statistics: &Statistics) -> String {
    let all = &statistics.decisions;
    if all.is_empty() {
        return String::new();
    }
    let shown = &all[all.len().saturating_sub(DECISIONS)..];
    let mut text =
        format!("\n{}\n", out::strong(&format!("{} decided", statistics.connection_name)));
    if shown.len() < all.len() {
        text += &format!("  … {} earlier ones with --json\n", all.len() - shown.len());
    }
    shown.iter().for_each(|decision| text += &line(decision, statistics.since));
    text
}

fn line(decision: &Decision, origin: Time) -> String {
    let at: Duration = decision.at.saturating_sub(origin);
    format!("  {}\n", Decision { at, ..decision.clone() })
}
