//! Records that could not be loaded, in a form that can be loaded again.

use super::{Load, origin::Origin};
use crate::OpenStore;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tidegate_core::{
    BatchId, Exception, ExceptionState, StoreError, inspect::ExceptionQuery, limits::MAX_LISTED,
};
use tidegate_records::RecordsError;

/// What a line of an errors file begins with.
const BEGINNING: &str = "{\"tidegate_error\":";

/// A record that is dead.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Its number, from 0.
    pub index: u64,
    /// The line where it begins.
    pub line: u64,
    /// The service's reason, or what is wrong with the record.
    pub reason: String,
    /// The line of an errors file: the reason beside the record. Loaded, it stands for the record.
    pub text: String,
}

/// Why the dead records of a load cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum FailuresError {
    /// The store does not say which they are.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file does not say what they were.
    #[error(transparent)]
    Records(#[from] RecordsError),
}

/// A line of an errors file.
#[derive(Serialize, Deserialize)]
pub(super) struct Line {
    pub tidegate_error: About,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<Box<RawValue>>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct About {
    /// Where it was first.
    pub file: String,
    pub line: u64,
    pub reason: String,
    pub attempts: u32,
    /// What it goes by, as long as it is what it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// What could not be read as a record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
}

impl Line {
    /// Reads it, if this is one.
    pub fn parse(text: &str) -> Option<serde_json::Result<Self>> {
        text.starts_with(BEGINNING).then(|| serde_json::from_str(text))
    }
}

impl Load {
    /// Dead records of this load, in the order of the file: from a record on, and at most so many.
    pub async fn failures(
        &self,
        store: &OpenStore,
        batch: BatchId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Failure>, FailuresError> {
        let (state, limit) = (Some(ExceptionState::Dead), limit.min(MAX_LISTED));
        let dead = store.exceptions(ExceptionQuery { batch, state, from, limit }).await?;
        dead.into_iter().map(|dead| self.failure(dead)).collect()
    }

    fn failure(&self, dead: Exception) -> Result<Failure, FailuresError> {
        let Exception { index, reason, attempts, .. } = dead;
        let mut failure = Failure { index, line: 0, reason, text: String::new() };
        if let Some(record) = self.records.read(index..index + 1)?.pop() {
            failure.line = record.line;
            let origin = Origin::of(record, &self.identity);
            let line = origin.line_of_errors(self.records.name(), &failure.reason, attempts);
            failure.text = serde_json::to_string(&line).unwrap_or_default();
        }
        Ok(failure)
    }
}
