//! Records that could not be loaded, in a form that can be loaded again.

use super::Load;
use crate::OpenStore;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use tidegate_core::{BatchId, ExceptionState, StoreError, inspect::ExceptionQuery};

/// What a line of an errors file begins with.
const BEGINNING: &str = "{\"tidegate_error\":";
/// Failures are read and written in parts of so many.
const PART: usize = 500;

/// A record that is dead.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The line where it begins.
    pub line: u64,
    /// The service's reason, or what is wrong with the record.
    pub reason: String,
    /// The line of an errors file: the reason beside the record. Loaded, it stands for the record.
    pub text: String,
}

#[derive(Serialize)]
struct Line<'a> {
    tidegate_error: About<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct About<'a> {
    file: &'a str,
    line: u64,
    reason: &'a str,
    attempts: u32,
    /// What could not be read as a record.
    #[serde(skip_serializing_if = "Option::is_none")]
    raw: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Wrapped<'a> {
    #[serde(borrow)]
    record: Option<&'a RawValue>,
}

/// The record itself, if this is a line of an errors file.
pub(super) fn unwrapped(text: &str) -> Result<String, String> {
    if !text.starts_with(BEGINNING) {
        return Ok(text.to_owned());
    }
    match serde_json::from_str(text) {
        Ok(Wrapped { record: Some(record) }) => Ok(record.get().to_owned()),
        _ => Err("it was malformed in the file that it comes from: correct it there".to_owned()),
    }
}

/// Hands over each dead record of a load, in the order of the file.
pub async fn failures<E: From<StoreError>>(
    load: &Load,
    store: &OpenStore,
    batch: BatchId,
    mut each: impl FnMut(Failure) -> Result<(), E>,
) -> Result<u64, E> {
    let (mut from, mut count) = (0, 0);
    loop {
        let query = ExceptionQuery { batch, state: Some(ExceptionState::Dead), from, limit: PART };
        let dead = store.exceptions(query).await?;
        let Some(last) = dead.last() else { return Ok(count) };
        from = last.index + 1;
        count += dead.len() as u64;
        for exception in dead {
            each(failure(load, exception.index, exception.attempts, exception.reason))?;
        }
    }
}

fn failure(load: &Load, index: u64, attempts: u32, reason: String) -> Failure {
    let record = load.records.read(index..index + 1).ok().and_then(|mut records| records.pop());
    let line = record.as_ref().map_or(0, |record| record.line);
    let content = record.as_ref().map(|record| &record.content);
    let text = content.and_then(|content| content.as_ref().ok()).map(|c| unwrapped(c.get()));
    let whole = text.and_then(Result::ok).and_then(|text| RawValue::from_string(text).ok());
    let raw = content.and_then(|content| content.as_ref().err());
    let about = About {
        file: load.records.name(),
        line,
        reason: &reason,
        attempts,
        raw: raw.map(|malformed| String::from_utf8_lossy(&malformed.raw)),
    };
    let line_of_file = Line { tidegate_error: about, record: whole.as_deref() };
    let text = serde_json::to_string(&line_of_file).unwrap_or_default();
    Failure { line, reason, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_an_errors_file_stands_for_its_record() {
        let record = RawValue::from_string("{\"id\":7}".to_owned()).unwrap();
        let about = |raw| About { file: "f", line: 3, reason: "no", attempts: 1, raw };
        let line = Line { tidegate_error: about(None), record: Some(&record) };
        let text = serde_json::to_string(&line).unwrap();
        assert!(text.starts_with(BEGINNING));
        assert_eq!(unwrapped(&text), Ok("{\"id\":7}".to_owned()));
        assert_eq!(unwrapped("{\"id\":7}"), Ok("{\"id\":7}".to_owned()));
        let line = Line { tidegate_error: about(Some("{bad".into())), record: None };
        assert!(unwrapped(&serde_json::to_string(&line).unwrap()).is_err());
    }
}
