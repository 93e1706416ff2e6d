//! Files to load, and what comes out of them.

#![allow(dead_code, reason = "not every test needs all of it")]

use flate2::{Compression, write::GzEncoder};
use std::{
    fs,
    io::{Cursor, Write},
    path::PathBuf,
};
use tempfile::TempDir;
use tidegate_records::{Format, Input, Options, Record, Records, RecordsError};

/// A file in a directory of its own.
pub struct Sample {
    directory: TempDir,
    pub path: PathBuf,
}

impl Sample {
    pub fn new(name: &str, content: impl AsRef<[u8]>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        fs::write(&path, content).unwrap();
        Self { directory, path }
    }

    pub fn open(&self) -> Result<Records, RecordsError> {
        self.open_with(&Options::default())
    }

    pub fn open_with(&self, options: &Options) -> Result<Records, RecordsError> {
        Records::open(Input::Path(self.path.clone()), options, &mut |_| {})
    }

    /// What opening it says, with FILE for the path.
    pub fn error(&self) -> String {
        let text = self.open().unwrap_err().to_string();
        text.replace(&self.path.display().to_string(), "FILE")
    }
}

pub fn stdin(content: impl Into<Vec<u8>>) -> Input {
    Input::Stdin(Box::new(Cursor::new(content.into())))
}

/// A stream of a format.
pub fn open(format: Format, content: impl Into<Vec<u8>>) -> Records {
    let options = Options { format: Some(format), ..Options::default() };
    Records::open(stdin(content), &options, &mut |_| {}).unwrap()
}

pub fn all(records: &Records) -> Vec<Record> {
    records.read(0..records.len()).unwrap()
}

/// A record as one comparable text: its number, its line, and its content or what is wrong.
pub fn show(record: &Record) -> String {
    let content = match &record.content {
        Ok(content) => content.get().to_owned(),
        Err(bad) => format!("{} <{}>", bad.reason, String::from_utf8_lossy(&bad.raw)),
    };
    format!("{} line {}: {content}", record.index, record.line)
}

pub fn show_all(records: &Records) -> Vec<String> {
    all(records).iter().map(show).collect()
}

pub fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

pub fn zstd(content: &[u8]) -> Vec<u8> {
    zstd::encode_all(content, 1).unwrap()
}
