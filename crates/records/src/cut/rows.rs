//! The rows of a CSV file. Line ends within quotes belong to a field.

use super::{Limit, Piece};
use crate::{RecordsError, judge::Flaw, window::Window};
use csv_core::{ReadRecordResult, Reader};

/// Room for the fields of a row while it is not known how many there are.
const FIRST_COLUMNS: usize = 64;

/// The fields of one row.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    text: &'a [u8],
    ends: &'a [usize],
    /// How many there are. Beyond the header's number they are only counted.
    pub count: usize,
}

impl<'a> Fields<'a> {
    /// Each field without its quotes.
    pub fn iter(self) -> impl Iterator<Item = &'a [u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(self.ends).map(|(start, &end)| &self.text[start..end])
    }
}

pub(crate) struct Rows {
    limit: Limit,
    columns: Option<usize>,
    reader: Reader,
    text: Vec<u8>,
    ends: Vec<usize>,
}

/// A row that is being read.
#[derive(Default)]
struct Row {
    /// How much of the window it takes up.
    length: usize,
    /// How much of the text and of the ends it takes up.
    text: usize,
    ends: usize,
    count: usize,
    too_long: bool,
    open_quote: bool,
}

impl Rows {
    pub fn new(max_bytes: usize, columns: Option<usize>) -> Self {
        // Built each time, which takes 20 to 30 µs: csv-core 0.1.13 does not clone all of a reader's
        // tables, so that a clone cuts in the wrong places.
        let mut reader = Reader::new();
        // It drops a byte order mark from its first input; in the middle of a file there is none. An
        // empty line is nothing to it.
        reader.read_record(b"\n", &mut [0], &mut [0]);
        let ends = vec![0; columns.unwrap_or(FIRST_COLUMNS) + 1];
        Self { limit: Limit::new(max_bytes), columns, reader, text: Vec::new(), ends }
    }

    pub fn next<'a>(
        &'a mut self,
        window: &'a mut Window<'_>,
    ) -> Result<Option<Piece<'a>>, RecordsError> {
        window.skip(is_line_end)?;
        if window.bytes().is_empty() {
            return Ok(None);
        }
        let line = window.line();
        let row = self.read(window)?;
        if row.too_long {
            return Ok(Some(self.limit.too_long(line)));
        }
        let raw = without_line_end(window.take(row.length));
        let flaw = row.open_quote.then_some(Flaw::OpenQuote);
        let (text, ends) = (&self.text[..row.text], &self.ends[..row.ends]);
        let fields = Some(Fields { text, ends, count: row.count });
        Ok(Some(Piece { line, raw, flaw, fields }))
    }

    fn read(&mut self, window: &mut Window<'_>) -> Result<Row, RecordsError> {
        let mut row = Row::default();
        loop {
            if row.length == window.bytes().len() && !window.more()? {
                // The line end that is missing: within quotes it would end nothing.
                let (ended, _) = self.feed(b"\n", &mut row);
                row.open_quote = !ended;
                return Ok(row);
            }
            let (ended, used) = self.feed(&window.bytes()[row.length..], &mut row);
            row.length += used;
            let length = row.length - usize::from(ended);
            if length > self.limit.max_bytes && !row.too_long {
                row.too_long = true;
                self.limit.keep(window.bytes());
            }
            if row.too_long {
                window.take(std::mem::take(&mut row.length));
                row.text = 0;
            }
            if ended {
                return Ok(row);
            }
        }
    }

    /// Returns whether the row ended, and how much of the input it used.
    fn feed(&mut self, input: &[u8], row: &mut Row) -> (bool, usize) {
        // A field is never longer than its input.
        let room = row.text + input.len() + 1;
        if self.text.len() < room {
            self.text.resize(room, 0);
        }
        let mut used = 0;
        loop {
            let text = &mut self.text[row.text..];
            let ends = &mut self.ends[row.ends..];
            let (result, read, written, ended) =
                self.reader.read_record(&input[used..], text, ends);
            used += read;
            row.text += written;
            row.ends += ended;
            row.count += ended;
            match result {
                ReadRecordResult::Record | ReadRecordResult::End => return (true, used),
                ReadRecordResult::OutputEndsFull => self.make_room(row),
                ReadRecordResult::InputEmpty | ReadRecordResult::OutputFull => {
                    return (false, used);
                }
            }
        }
    }

    /// A header may have any number of fields; those of a row that has too many are only counted, so
    /// that a row of commas takes no memory.
    fn make_room(&mut self, row: &mut Row) {
        if self.columns.is_some() {
            row.ends = 0;
        } else {
            self.ends.resize(self.ends.len() * 2, 0);
        }
    }
}

pub(crate) fn is_line_end(byte: &u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

fn without_line_end(raw: &[u8]) -> &[u8] {
    let kept = raw.iter().rposition(|byte| !is_line_end(byte)).map_or(0, |at| at + 1);
    &raw[..kept]
}
