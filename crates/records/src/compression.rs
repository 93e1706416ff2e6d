//! Compressed data, recognized by its first bytes whatever the file's name.

use crate::RecordsError;
use flate2::bufread::MultiGzDecoder;
use std::{
    fmt,
    io::{self, BufReader, Read},
};

/// How many bytes it takes to recognize compressed data.
pub(crate) const MAGIC_BYTES: u64 = 4;

/// What the decoder of gzip is fed at a time.
const INPUT_BYTES: usize = 128 * 1024;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    /// One or more gzip members.
    Gzip,
    /// One or more zstd frames.
    Zstd,
}

impl Compression {
    /// What the first bytes of a file say.
    pub(crate) fn of(head: &[u8]) -> Option<Self> {
        match head {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            // A frame to skip: parallel compressors put one first.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstd),
            _ => None,
        }
    }

    /// What is compressed in `reader`, to the end of the last member or frame.
    pub(crate) fn decode(self, reader: Box<dyn Read>) -> io::Result<Box<dyn Read>> {
        Ok(match self {
            Self::Gzip => {
                Box::new(MultiGzDecoder::new(BufReader::with_capacity(INPUT_BYTES, reader)))
            }
            Self::Zstd => Box::new(zstd::Decoder::new(reader)?),
        })
    }

    /// What a failure to decode means.
    pub(crate) fn explain(self, name: String, cause: io::Error) -> RecordsError {
        if cause.raw_os_error().is_some() {
            RecordsError::Io { name, cause }
        } else if cause.kind() == io::ErrorKind::UnexpectedEof {
            RecordsError::Truncated { name, compression: self }
        } else {
            RecordsError::Damaged { name, compression: self, reason: cause.to_string() }
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        })
    }
}
