//! Why a file of records cannot be opened or read.

use crate::{Compression, format::NAMING};
use std::{io, ops::Range, path::PathBuf};

/// Why a file of records cannot be opened or read. Malformed records are no reason.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordsError {
    /// There is no such file.
    #[error("cannot find {name}: check the path")]
    NotFound {
        /// The input.
        name: String,
    },
    /// It is a directory.
    #[error("{name} is a directory: name a file in it")]
    Directory {
        /// The input.
        name: String,
    },
    /// There is not one record in it.
    #[error("{name} has no records")]
    Empty {
        /// The input.
        name: String,
    },
    /// Neither its name nor its content says what it is.
    #[error("cannot tell the format of {name}: {NAMING}")]
    UnknownFormat {
        /// The input.
        name: String,
    },
    /// It is text, but not in UTF-8.
    #[error("{name} is in UTF-16: convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)")]
    Utf16 {
        /// The input.
        name: String,
    },
    /// A JSON array whose records cannot be told apart beyond some point.
    #[error("{name}: the array breaks off at line {line}: {reason}")]
    Array {
        /// The input.
        name: String,
        /// Where it breaks.
        line: u64,
        /// What is wrong there.
        reason: String,
    },
    /// A CSV header that gives no field names.
    #[error("{name}: cannot use line {line} as the header: {reason}")]
    Header {
        /// The input.
        name: String,
        /// Where the header is.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// The compressed data ends too early.
    #[error("{name} is cut off: its {compression} data has no end; copy or download it again")]
    Truncated {
        /// The input.
        name: String,
        /// How it is compressed.
        compression: Compression,
    },
    /// The compressed data makes no sense.
    #[error("{name} is damaged: its {compression} data cannot be read ({reason})")]
    Damaged {
        /// The input.
        name: String,
        /// How it is compressed.
        compression: Compression,
        /// What the decoder says.
        reason: String,
    },
    /// It is not the file that was opened any more.
    #[error("{name} changed while it was being loaded: load it again, or a copy of it")]
    Changed {
        /// The input.
        name: String,
    },
    /// More was asked for than there is.
    #[error("{name} has {len} records: cannot read {} to {}", asked.start, asked.end)]
    Beyond {
        /// The input.
        name: String,
        /// The range that was asked for.
        asked: Range<u64>,
        /// How many records there are.
        len: u64,
    },
    /// The system could not read it.
    #[error("cannot read {name}: {cause}")]
    Io {
        /// The input.
        name: String,
        /// What the system says.
        cause: io::Error,
    },
    /// The temporary copy of a stream or of compressed data could not be kept.
    #[error("cannot keep a temporary copy of {name} in {}: {cause}", directory.display())]
    Spool {
        /// The input.
        name: String,
        /// Where the copy should have been.
        directory: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
}
