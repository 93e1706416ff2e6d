//! A batch in words, and in JSON.

use super::number::{self, count, percent, rate, span};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};
use tidegate::{
    BatchState,
    inspect::{BatchStatus, Progress},
};

/// What every command's JSON says of a batch, and what this one adds.
pub fn json(status: &BatchStatus, more: Value) -> Value {
    let (batch, progress) = (&status.batch, &status.progress);
    let mut object = json!({
        "batch": batch.id,
        "workload": batch.workload,
        "snapshot": batch.snapshot,
        "seed": batch.seed,
        "runs": batch.runs,
        "keep": batch.keep,
        "max_attempts": batch.retry.max_attempts,
        "timeout_seconds": batch.timeout.map(|timeout| timeout.as_secs_f64()),
        "state": status.state,
        "completed": progress.completed,
        "dead": progress.dead,
        "retrying": progress.retrying,
        "leased": progress.leased,
        "untouched": progress.untouched,
        "created_ms": status.created_ms,
        "finished_ms": status.finished_ms,
    });
    if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
        object.extend(more);
    }
    object
}

/// A state in words.
pub fn state(state: BatchState) -> &'static str {
    match state {
        BatchState::CompletedWithFailures => "completed with failures",
        other => other.as_str(),
    }
}

/// How far a batch is: `41,200 of 100,000 runs (41.2 %), 3 dead, 12 retrying`.
pub fn progress(progress: &Progress, runs: u64) -> String {
    done_of(progress, runs, &number::runs(runs))
}

/// How far a load is.
pub fn records(progress: &Progress, records: u64) -> String {
    done_of(progress, records, &number::records(records))
}

fn done_of(progress: &Progress, runs: u64, all: &str) -> String {
    let done = progress.completed + progress.dead;
    let share = percent(done, runs);
    let mut text = format!("{} of {all} ({share})", count(done));
    let rest = [(progress.dead, "dead"), (progress.retrying, "retrying")];
    for (number, word) in rest.into_iter().filter(|(number, _)| *number > 0) {
        text += &format!(", {} {word}", count(number));
    }
    text
}

/// How long a batch took, or how old it is, by the store's clock as far as it goes.
pub fn timing(status: &BatchStatus) -> String {
    let age = ago(status.created_ms);
    match status.finished_ms {
        Some(_) => {
            let took = took(status).unwrap_or_default();
            let done = status.progress.completed as f64;
            let speed = rate(done / took.as_secs_f64().max(1e-3));
            format!("submitted {age} ago, open for {} ({speed})", span(took))
        }
        None => format!("submitted {age} ago"),
    }
}

/// From its submission to its end.
pub fn took(status: &BatchStatus) -> Option<Duration> {
    let millis = status.finished_ms? - status.created_ms;
    Some(Duration::from_millis(u64::try_from(millis).unwrap_or(0)))
}

/// How long ago a time was.
pub fn ago(since_1970_ms: i64) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let then = Duration::from_millis(u64::try_from(since_1970_ms).unwrap_or(0));
    span(now.saturating_sub(then))
}
