//! What became of one item, and the row of an item that is not simply done.

use crate::{BatchId, RetryPolicy, limits::MAX_REASON_BYTES};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What became of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It succeeded; its result and numbers are in the outcome.
    Done,
    /// It failed and is tried again after a delay.
    Retry {
        /// How many attempts have failed, this one included.
        attempts: u32,
        /// Why, for people.
        reason: String,
        /// How long to wait, by the store's clock.
        delay: Duration,
    },
    /// It failed for the last time.
    Dead {
        /// How many attempts have failed, this one included.
        attempts: u32,
        /// Why, for people.
        reason: String,
    },
}

impl Verdict {
    /// The verdict on a run that failed, after `before` failed attempts.
    pub fn failed(
        policy: &RetryPolicy,
        before: u32,
        permanent: bool,
        reason: String,
        jitter: u64,
    ) -> Self {
        let attempts = before + 1;
        let reason = shorten(reason);
        match policy.delay(attempts, jitter) {
            Some(delay) if !permanent => Verdict::Retry { attempts, reason, delay },
            _ => Verdict::Dead { attempts, reason },
        }
    }
}

/// Cuts a reason to what may be stored, at a character's border. NUL cannot be stored as text.
fn shorten(reason: String) -> String {
    let mut reason = reason.replace('\0', "\u{fffd}");
    if reason.len() > MAX_REASON_BYTES {
        let cut = (0..=MAX_REASON_BYTES).rev().find(|&i| reason.is_char_boundary(i)).unwrap_or(0);
        reason.truncate(cut);
    }
    reason
}

/// The stored row of a run that is not simply done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exception {
    /// Its batch.
    pub batch: BatchId,
    /// Which run.
    pub index: u64,
    /// How many attempts have failed.
    pub attempts: u32,
    /// Whether it is tried again.
    pub state: ExceptionState,
    /// Why the last attempt failed.
    pub reason: String,
}

/// Whether an exception is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExceptionState {
    /// Waits for its due time, or is being tried right now.
    Retry,
    /// Given up, until a person retries it.
    Dead,
}

impl ExceptionState {
    /// The word that stores write.
    pub fn as_str(self) -> &'static str {
        match self {
            ExceptionState::Retry => "retry",
            ExceptionState::Dead => "dead",
        }
    }

    /// Reads the word that stores write.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "retry" => Some(ExceptionState::Retry),
            "dead" => Some(ExceptionState::Dead),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_is_cut_at_a_character() {
        let verdict = Verdict::failed(&RetryPolicy::default(), 4, false, "é\0".repeat(3_000), 0);
        let Verdict::Dead { attempts: 5, reason } = verdict else { panic!("{verdict:?}") };
        assert!(reason.len() <= MAX_REASON_BYTES && !reason.contains('\0'));
    }
}
