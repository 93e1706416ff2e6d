//! Where the content lies once it was scanned, and reading it at a position.

use crate::{RecordsError, window::Fill};
use std::{
    fs::{File, Metadata},
    io,
    time::SystemTime,
};

/// What changes when somebody writes to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    bytes: u64,
    modified: Option<SystemTime>,
}

impl Fingerprint {
    pub fn of(metadata: &Metadata) -> Self {
        Self { bytes: metadata.len(), modified: metadata.modified().ok() }
    }
}

/// The content, decompressed. It stays readable if the file's name is given to another file.
#[derive(Debug)]
pub(crate) struct Place {
    pub name: String,
    pub file: File,
    /// None for a temporary copy, which nobody else can write to.
    pub fingerprint: Option<Fingerprint>,
}

impl Place {
    /// Fails if the file was written to since it was opened.
    pub fn check(&self) -> Result<(), RecordsError> {
        let Some(fingerprint) = &self.fingerprint else { return Ok(()) };
        let metadata = self.file.metadata().map_err(|cause| self.failed(cause))?;
        if Fingerprint::of(&metadata) == *fingerprint { Ok(()) } else { Err(self.changed()) }
    }

    pub fn changed(&self) -> RecordsError {
        RecordsError::Changed { name: self.name.clone() }
    }

    /// Reads from here on, with a position of its own.
    pub fn from(&self, offset: u64) -> Reading<'_> {
        Reading { place: self, offset }
    }

    fn failed(&self, cause: io::Error) -> RecordsError {
        RecordsError::Io { name: self.name.clone(), cause }
    }
}

/// One read in flight.
pub(crate) struct Reading<'a> {
    place: &'a Place,
    offset: u64,
}

impl Fill for Reading<'_> {
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, RecordsError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match read_at(&self.place.file, &mut buffer[filled..], self.offset) {
                Ok(0) => break,
                Ok(count) => {
                    filled += count;
                    self.offset += count as u64;
                }
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(self.place.failed(cause)),
            }
        }
        Ok(filled)
    }
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}
