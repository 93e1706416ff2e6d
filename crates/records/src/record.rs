//! Records as they are read.

use crate::{cut::Fields, judge::Sound};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::value::{RawValue, to_raw_value};
use std::str;

/// One record of a file.
#[derive(Debug)]
pub struct Record {
    /// Its number, from 0.
    pub index: u64,
    /// The line, from 1, on which it begins.
    pub line: u64,
    /// A JSON object as text on one line, or what is wrong.
    pub content: Result<Box<RawValue>, Malformed>,
}

/// A record that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// What is wrong with it.
    pub reason: String,
    /// Its bytes as they are in the file, without the space around them.
    pub raw: Vec<u8>,
    /// Whether `raw` is only the beginning of a record that is too long.
    pub truncated: bool,
}

/// Which records of a file are malformed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MalformedList {
    /// How many there are.
    pub count: u64,
    /// The first 100 of them.
    pub first: Vec<MalformedAt>,
}

/// A malformed record that was met in the scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MalformedAt {
    /// Its number, from 0.
    pub index: u64,
    /// The line, from 1, on which it begins.
    pub line: u64,
    /// What is wrong with it.
    pub reason: String,
}

impl MalformedList {
    /// A file that is all wrong must not fill the memory with reasons.
    const KEPT: usize = 100;

    pub(crate) fn add(&mut self, index: u64, line: u64, reason: impl ToString) {
        self.count += 1;
        if self.first.len() < Self::KEPT {
            self.first.push(MalformedAt { index, line, reason: reason.to_string() });
        }
    }
}

/// The text of a record as one line of JSON.
pub(crate) fn content(sound: Sound<'_>, names: &[String]) -> serde_json::Result<Box<RawValue>> {
    match sound {
        Sound::Row(fields) => to_raw_value(&Object { names, fields }),
        Sound::Value(value) if has_line_end(value.get().as_bytes()) => {
            let line = on_one_line(value.get().as_bytes());
            RawValue::from_string(String::from_utf8_lossy(&line).into_owned())
        }
        Sound::Value(value) => Ok(value.to_owned()),
    }
}

/// Whether it takes more than one line.
fn has_line_end(json: &[u8]) -> bool {
    memchr::memchr2(b'\n', b'\r', json).is_some()
}

/// Leaves out line ends and the indentation after them. Within strings of valid JSON there are none.
fn on_one_line(json: &[u8]) -> Vec<u8> {
    let lines = json.split(|byte| matches!(byte, b'\n' | b'\r'));
    lines.flat_map(|line| line.trim_ascii_start()).copied().collect()
}

/// A row as an object of strings.
struct Object<'a> {
    names: &'a [String],
    fields: Fields<'a>,
}

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.names.len()))?;
        for (name, field) in self.names.iter().zip(self.fields.iter()) {
            let text = str::from_utf8(field).map_err(serde::ser::Error::custom)?;
            map.serialize_entry(name, text)?;
        }
        map.end()
    }
}
