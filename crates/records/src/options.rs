//! How records are taken in.

use crate::Format;
use std::path::PathBuf;

/// How records are taken in.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the input looks like; by default its name or its beginning tells.
    pub format: Option<Format>,
    /// A longer record is malformed. It bounds the memory that one record can take.
    pub max_record_bytes: usize,
    /// Where streams and compressed files are kept while they are loaded; by default the system's
    /// directory for temporary files.
    pub spool_dir: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self { format: None, max_record_bytes: 16 * 1024 * 1024, spool_dir: None }
    }
}
