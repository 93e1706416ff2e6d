//! Whether a record is right. It is judged when it is scanned and again when it is read: remembering
//! every wrong one could take as much memory as the file.

use crate::cut::{Fields, Piece};
use serde_json::value::RawValue;
use std::str;

/// What is wrong with a record.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Flaw {
    #[error("it is longer than {max_bytes} bytes")]
    TooLong { max_bytes: usize },
    #[error("a quote is not closed")]
    OpenQuote,
    #[error("it is not UTF-8 at byte {0}")]
    Encoding(usize),
    #[error("{message} at column {column}")]
    Syntax {
        /// Lines before it within the record.
        lines: u64,
        column: usize,
        message: String,
    },
    #[error("it is {0}, not an object")]
    NotAnObject(&'static str),
    #[error("it has {found} fields, the header has {expected}")]
    Fields { found: usize, expected: usize },
}

/// A record that is right.
pub(crate) enum Sound<'a> {
    Value(&'a RawValue),
    Row(Fields<'a>),
}

/// `columns` is how many fields a row has.
pub(crate) fn judge<'a>(piece: Piece<'a>, columns: usize) -> Result<Sound<'a>, Flaw> {
    if let Some(flaw) = piece.flaw {
        return Err(flaw);
    }
    let text =
        str::from_utf8(piece.raw).map_err(|error| Flaw::Encoding(error.valid_up_to() + 1))?;
    match piece.fields {
        None => judge_value(text).map(Sound::Value),
        Some(fields) if fields.count == columns => Ok(Sound::Row(fields)),
        Some(fields) => Err(Flaw::Fields { found: fields.count, expected: columns }),
    }
}

/// Checks the syntax without building the value, and without recursion.
fn judge_value(text: &str) -> Result<&RawValue, Flaw> {
    let value: &RawValue = serde_json::from_str(text).map_err(|error| syntax(&error))?;
    match value.get().as_bytes().first() {
        Some(b'{') => Ok(value),
        Some(b'[') => Err(Flaw::NotAnObject("an array")),
        Some(b'"') => Err(Flaw::NotAnObject("a string")),
        Some(b't' | b'f') => Err(Flaw::NotAnObject("a boolean")),
        Some(b'n') => Err(Flaw::NotAnObject("null")),
        _ => Err(Flaw::NotAnObject("a number")),
    }
}

fn syntax(error: &serde_json::Error) -> Flaw {
    let text = error.to_string();
    // The line within a record means nothing to a reader of the file.
    let message = text.split(" at line ").next().unwrap_or(&text).to_owned();
    let lines = (error.line() as u64).saturating_sub(1);
    Flaw::Syntax { lines, column: error.column(), message }
}
