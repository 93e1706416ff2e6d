//! What a cursor does not tell about a lane, as it is stored.

use crate::error::corrupt;
use serde::{Deserialize, Serialize};
use tidegate_core::{
    StoreError,
    outbox::{Before, Lag, Lane, Progress},
};

/// Sinks that lag, and what was done under other routes.
#[derive(Default, Deserialize)]
pub(super) struct State {
    #[serde(default)]
    pub lags: Vec<Lag>,
    #[serde(default)]
    pub before: Option<Before>,
}

#[derive(Serialize)]
struct Written<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lags: Vec<WrittenLag<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<&'a Before>,
}

#[derive(Serialize)]
struct WrittenLag<'a> {
    #[serde(flatten)]
    lag: &'a Lag,
    /// Its topics, for SQL.
    regex: String,
}

/// Nothing if the cursor tells all.
pub(super) fn write(
    operation: &'static str,
    progress: &Progress,
) -> Result<Option<String>, StoreError> {
    if progress.lags.is_empty() && progress.before.is_none() {
        return Ok(None);
    }
    let lags = progress.lags.iter().map(|lag| WrittenLag { lag, regex: lag.topics.regex() });
    let written = Written { lags: lags.collect(), before: progress.before.as_ref() };
    let unwritable = |error| corrupt(operation, format!("progress cannot be written: {error}"));
    serde_json::to_string(&written).map(Some).map_err(unwritable)
}

pub(super) fn read(
    operation: &'static str,
    lane: Lane,
    text: Option<&str>,
) -> Result<State, StoreError> {
    let damaged = |_| corrupt(operation, format!("the progress of lane {} is damaged", lane.0));
    text.map(serde_json::from_str).transpose().map_err(damaged).map(Option::unwrap_or_default)
}
