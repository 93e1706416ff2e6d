//! A scanned file, from which any range of records can be read.

#[cfg(test)]
mod tests;

use crate::{
    Format, Input, Malformed, MalformedList, Options, Record, RecordsError,
    cut::{Cutter, Piece, Stop, is_line_end},
    index::{Index, Point},
    intake::{Intake, Taken},
    judge::{Flaw, judge},
    place::Place,
    record::content,
    scan::{begin, scan, tell_format},
    trail::Trail,
    window::{Fill, Window},
};
use std::ops::Range;

/// The records of a file, numbered from 0 in the order of the file.
#[derive(Debug)]
pub struct Records {
    format: Format,
    max_bytes: usize,
    names: Vec<String>,
    len: u64,
    malformed: MalformedList,
    hash: blake3::Hash,
    bytes: u64,
    place: Place,
    index: Index,
    trail: Trail,
}

impl Records {
    /// Reads the input once. After it returns, the number of records, the hash of the content and
    /// which records are malformed are known, and any record can be read. `progress` is called now
    /// and then with how many bytes of the input, compressed as it is, were read.
    ///
    /// Fails if the input cannot be read to its end, or its records not be told apart; a malformed
    /// record is no failure.
    pub fn open(
        input: Input,
        options: &Options,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Self, RecordsError> {
        let (name, path) = (input.name(), input.path().map(ToOwned::to_owned));
        let mut intake = Intake::new(input.open()?, options, progress)?;
        let mut window = Window::new(&mut intake, Point::START);
        begin(&mut window, &name)?;
        let format = tell_format(&mut window, options.format, path.as_deref(), &name)?;
        let max_bytes = options.max_record_bytes;
        let scanned = scan(&mut window, format, max_bytes, &name);
        let Taken { place, hash, bytes } = intake.finish();
        // That it changed explains why it makes no sense.
        place.check()?;
        let scan = scanned?;
        if scan.len == 0 {
            return Err(RecordsError::Empty { name });
        }
        let (len, index, malformed, names) = (scan.len, scan.index, scan.malformed, scan.names);
        let trail = Trail::default();
        Ok(Self { format, max_bytes, names, len, malformed, hash, bytes, place, index, trail })
    }

    /// What messages call the input.
    pub fn name(&self) -> &str {
        &self.place.name
    }

    /// How many records there are, malformed ones included. There is at least one.
    #[expect(clippy::len_without_is_empty, reason = "a file without records is not opened")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The hash of the content, decompressed. Two inputs with the same hash and format have the same
    /// records.
    pub fn hash(&self) -> blake3::Hash {
        self.hash
    }

    /// What the input looks like.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Which records are malformed.
    pub fn malformed(&self) -> &MalformedList {
        &self.malformed
    }

    /// How long the content is, decompressed.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads a range of records. Any number of threads may read at the same time; one that begins
    /// where another ended costs no more than what it reads, any other one up to 256 KiB more (16 MiB
    /// in a file of 1 TB).
    ///
    /// Fails if the file was changed since it was opened: then nothing of it can be trusted.
    pub fn read(&self, range: Range<u64>) -> Result<Vec<Record>, RecordsError> {
        if range.is_empty() {
            return Ok(Vec::new());
        }
        if range.end > self.len {
            let name = self.place.name.clone();
            return Err(RecordsError::Beyond { name, asked: range, len: self.len });
        }
        let records = self.read_from(self.nearest(range.start), range);
        self.place.check()?;
        records
    }

    /// The last known place from which record `index` can be reached.
    fn nearest(&self, index: u64) -> Point {
        let indexed = self.index.before(index);
        self.trail.before(index).filter(|point| point.index > indexed.index).unwrap_or(indexed)
    }

    fn read_from(&self, point: Point, range: Range<u64>) -> Result<Vec<Record>, RecordsError> {
        self.check_boundary(point)?;
        let mut reading = self.place.from(point.offset);
        let mut window = Window::new(&mut reading, point);
        let mut cutter = Cutter::new(self.format, self.max_bytes, Some(self.names.len()), point);
        for _ in point.index..range.start {
            self.next(&mut cutter, &mut window)?;
        }
        let mut records = Vec::new();
        for index in range.clone() {
            let piece = self.next(&mut cutter, &mut window)?;
            records.push(self.record(index, piece)?);
        }
        if range.end < self.len {
            self.trail.moved(range.start, window.point(range.end));
        }
        Ok(records)
    }

    /// The scan has seen a line end before each record but the first; arrays have their commas.
    fn check_boundary(&self, point: Point) -> Result<(), RecordsError> {
        if point.index == 0 || self.format == Format::Json {
            return Ok(());
        }
        let mut before = [0];
        self.place.from(point.offset - 1).fill(&mut before)?;
        if is_line_end(&before[0]) { Ok(()) } else { Err(self.place.changed()) }
    }

    /// The next record. The scan has seen that there is one.
    fn next<'a>(
        &self,
        cutter: &'a mut Cutter,
        window: &'a mut Window<'_>,
    ) -> Result<Piece<'a>, RecordsError> {
        match cutter.next(window) {
            Ok(Some(piece)) => Ok(piece),
            Ok(None) | Err(Stop::Broken { .. }) => Err(self.place.changed()),
            Err(Stop::Failed(error)) => Err(error),
        }
    }

    fn record(&self, index: u64, piece: Piece<'_>) -> Result<Record, RecordsError> {
        let (line, raw) = (piece.line, piece.raw);
        let malformed = |reason: &dyn ToString, truncated| Malformed {
            reason: reason.to_string(),
            raw: raw.to_vec(),
            truncated,
        };
        let content = match judge(piece, self.names.len()) {
            Ok(sound) => content(sound, &self.names).map_err(|error| malformed(&error, false)),
            Err(Flaw::Syntax { .. }) if self.format == Format::Json => {
                return Err(self.place.changed());
            }
            Err(flaw) => Err(malformed(&flaw, matches!(flaw, Flaw::TooLong { .. }))),
        };
        Ok(Record { index, line, content })
    }
}
