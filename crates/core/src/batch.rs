//! N runs with one snapshot and one seed, finalized together.

use crate::{RetryPolicy, SnapshotHash};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr, time::Duration};

/// Numbers a batch within its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BatchId(pub i64);

impl fmt::Display for BatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for BatchId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(BatchId)
    }
}

/// What all workers must know to act on any run of a batch. Never changes after submission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    /// Its number in the store.
    pub id: BatchId,
    /// Which workload carries out its runs.
    pub workload: String,
    /// The input that its runs share.
    pub snapshot: SnapshotHash,
    /// Together with a run's index, all the randomness of that run.
    pub seed: u64,
    /// How many runs it has.
    pub runs: u64,
    /// Which results are stored.
    pub keep: Keep,
    /// What happens to a run that fails.
    pub retry: RetryPolicy,
    /// How long one run may take; none: as long as it likes.
    pub timeout: Option<Duration>,
}

/// Where a batch is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchState {
    /// Some runs are not settled yet, or the batch is not closed yet.
    Running,
    /// Every run succeeded.
    Completed,
    /// Every run is settled, some of them dead.
    CompletedWithFailures,
    /// Stopped by a person; what was settled until then stays.
    Cancelled,
}

impl BatchState {
    /// The word that stores write.
    pub fn as_str(self) -> &'static str {
        match self {
            BatchState::Running => "running",
            BatchState::Completed => "completed",
            BatchState::CompletedWithFailures => "completed_with_failures",
            BatchState::Cancelled => "cancelled",
        }
    }

    /// Reads the word that stores write.
    pub fn parse(word: &str) -> Option<Self> {
        use BatchState::*;
        [Running, Completed, CompletedWithFailures, Cancelled]
            .into_iter()
            .find(|state| state.as_str() == word)
    }
}

/// Which results of a batch are stored. Aggregates and digest always cover all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Keep {
    /// Every result.
    #[default]
    All,
    /// No result.
    None,
    /// This many results, evenly spread over the indexes.
    Sample(u64),
}

impl Keep {
    /// Whether the result of run `index` of `runs` is stored: the same answer in every worker.
    pub fn keeps(self, index: u64, runs: u64) -> bool {
        match self {
            Keep::All => true,
            Keep::None => false,
            // Run i is kept where the line of slope n/runs reaches a new whole number.
            Keep::Sample(n) => {
                let step = |i: u64| u128::from(i) * u128::from(n.min(runs)) / u128::from(runs);
                step(index + 1) != step(index)
            }
        }
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Keep::All => f.write_str("all"),
            Keep::None => f.write_str("none"),
            Keep::Sample(n) => write!(f, "sample:{n}"),
        }
    }
}

impl FromStr for Keep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Keep::All),
            "none" => Ok(Keep::None),
            _ => text
                .strip_prefix("sample:")
                .and_then(|n| n.parse().ok())
                .filter(|n| *n > 0)
                .map(Keep::Sample)
                .ok_or_else(|| format!("`{text}` is none of all, none, sample:N (N above 0)")),
        }
    }
}

impl TryFrom<String> for Keep {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Keep> for String {
    fn from(keep: Keep) -> String {
        keep.to_string()
    }
}
