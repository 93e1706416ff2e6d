//! The row of a run that is not simply done.

use crate::BatchId;
use serde::{Deserialize, Serialize};

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
