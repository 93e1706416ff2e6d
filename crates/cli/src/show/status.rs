//! A batch in words.

use super::number::{self, count, percent, rate, span};
use std::time::{Duration, SystemTime};
use tidegate::{
    BatchState,
    inspect::{BatchStatus, Progress},
};

/// A state in words.
pub fn state(state: BatchState) -> &'static str {
    match state {
        BatchState::CompletedWithFailures => "completed with failures",
        other => other.as_str(),
    }
}

/// How far a batch is: `41,200 of 100,000 runs (41.2 %), 3 dead, 12 retrying`.
pub fn progress(progress: &Progress, runs: u64) -> String {
    let done = progress.completed + progress.dead;
    let share = percent(done, runs);
    let mut text = format!("{} of {} ({share})", count(done), number::runs(runs));
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
