//! The part of the content that is being looked at.

use crate::{RecordsError, index::Point};
use memchr::memchr_iter;

/// A read of ten short records needs no more.
const FIRST_CHUNK: usize = 8 * 1024;

/// Larger chunks are no faster.
const MAX_CHUNK: usize = 256 * 1024;

/// Where bytes come from.
pub(crate) trait Fill {
    /// Fills the whole buffer, or what there is before the content's end. Returns how much it was.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, RecordsError>;
}

/// Bytes that were read and not yet taken, and where they are in the content.
pub(crate) struct Window<'a> {
    source: &'a mut dyn Fill,
    buffer: Vec<u8>,
    taken: usize,
    offset: u64,
    line: u64,
    chunk: usize,
    ended: bool,
}

impl<'a> Window<'a> {
    /// `source` must begin at `point`.
    pub fn new(source: &'a mut dyn Fill, point: Point) -> Self {
        let Point { offset, line, .. } = point;
        let buffer = Vec::new();
        Self { source, buffer, taken: 0, offset, line, chunk: FIRST_CHUNK, ended: false }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.taken..]
    }

    /// Where the first byte is, with `index` as the number of the record that follows.
    pub fn point(&self, index: u64) -> Point {
        Point { index, offset: self.offset, line: self.line }
    }

    pub fn line(&self) -> u64 {
        self.line
    }

    /// Appends bytes. Returns false at the content's end.
    pub fn more(&mut self) -> Result<bool, RecordsError> {
        if self.ended {
            return Ok(false);
        }
        self.buffer.drain(..self.taken);
        self.taken = 0;
        let held = self.buffer.len();
        self.buffer.resize(held + self.chunk, 0);
        let filled = self.source.fill(&mut self.buffer[held..])?;
        self.buffer.truncate(held + filled);
        self.ended = filled < self.chunk;
        self.chunk = (self.chunk * 2).min(MAX_CHUNK);
        Ok(filled > 0)
    }

    /// Has at least `count` bytes, unless the content ends before.
    pub fn ensure(&mut self, count: usize) -> Result<(), RecordsError> {
        while self.bytes().len() < count && self.more()? {}
        Ok(())
    }

    /// Moves beyond the first `count` bytes and returns them.
    pub fn take(&mut self, count: usize) -> &[u8] {
        let from = self.taken;
        self.taken += count;
        self.offset += count as u64;
        let bytes = &self.buffer[from..self.taken];
        self.line += memchr_iter(b'\n', bytes).count() as u64;
        bytes
    }

    /// Moves to the first byte that is not one of these.
    pub fn skip(&mut self, is_skipped: impl Fn(&u8) -> bool) -> Result<(), RecordsError> {
        loop {
            let count = self.bytes().iter().take_while(|byte| is_skipped(byte)).count();
            self.take(count);
            if !self.bytes().is_empty() || !self.more()? {
                return Ok(());
            }
        }
    }
}
