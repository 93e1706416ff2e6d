//! The lines of JSON that go in and out.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use tidegate_core::{Run, RunError};

#[derive(Serialize)]
struct Request {
    index: u64,
    seed: String,
    attempts: u32,
}

/// The line that asks for a run.
pub fn request(run: &Run) -> Vec<u8> {
    let request =
        Request { index: run.index(), seed: run.seed().to_string(), attempts: run.attempts() };
    let mut line = serde_json::to_vec(&request).expect("numbers and a string are always JSON");
    line.push(b'\n');
    line
}

/// The line that a process gets first.
pub fn greeting(snapshot: &str) -> Vec<u8> {
    format!("{{\"snapshot\":{snapshot}}}\n").into_bytes()
}

/// What a program said about a run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    index: u64,
    result: Option<Box<RawValue>>,
    #[serde(default)]
    numbers: BTreeMap<String, f64>,
    #[serde(default)]
    categories: BTreeMap<String, String>,
    error: Option<String>,
    #[serde(default)]
    permanent: bool,
}

impl Answer {
    /// Reads the answer for run `index`; the error says what else was read.
    pub fn read(line: &[u8], index: u64) -> Result<Self, String> {
        let answer: Answer = serde_json::from_slice(line)
            .map_err(|error| format!("answered no valid line: {error}: `{}`", excerpt(line)))?;
        if answer.index != index {
            return Err(format!("was asked for run {index} and answered run {}", answer.index));
        }
        Ok(answer)
    }

    /// Gives its numbers and categories to the run, and its result to the caller.
    pub fn take(self, run: &mut Run) -> Result<Box<RawValue>, RunError> {
        if let Some(reason) = self.error {
            return Err(RunError { permanent: self.permanent, ..RunError::new(reason) });
        }
        self.numbers.iter().for_each(|(name, &value)| run.number(name, value));
        self.categories.iter().for_each(|(name, value)| run.category(name, value));
        Ok(self.result.unwrap_or_else(|| RawValue::NULL.to_owned()))
    }
}

/// The start of a line that may be long or no text at all.
fn excerpt(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(200)]);
    text.trim_end().to_owned()
}
