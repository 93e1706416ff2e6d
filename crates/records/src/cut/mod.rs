//! Telling records apart. The scan and every read cut the same way, so that a number always means
//! the same record; no cut depends on how much happened to be read at a time.

mod array;
mod lines;
mod rows;

use crate::{Format, RecordsError, index::Point, judge::Flaw, window::Window};
use array::Array;
pub(crate) use array::open_array;
use lines::Lines;
pub(crate) use rows::{Fields, Rows, is_line_end};

/// How much is kept of a record that is too long.
const BEGINNING_BYTES: usize = 1024;

/// One record, right or wrong.
pub(crate) struct Piece<'a> {
    /// Where it begins.
    pub line: u64,
    /// Its text without the space around it, or its beginning if it is too long.
    pub raw: &'a [u8],
    /// What its cutting has shown already.
    pub flaw: Option<Flaw>,
    /// Its fields, if it is a row.
    pub fields: Option<Fields<'a>>,
}

/// Why cutting cannot go on.
pub(crate) enum Stop {
    /// There is something wrong with reading.
    Failed(RecordsError),
    /// There is something wrong with the content.
    Broken { line: u64, reason: String },
}

impl From<RecordsError> for Stop {
    fn from(error: RecordsError) -> Self {
        Self::Failed(error)
    }
}

/// What cuts one format.
pub(crate) enum Cutter {
    Lines(Lines),
    Array(Array),
    Rows(Box<Rows>),
}

impl Cutter {
    /// Cuts from a point on. `columns` is how many fields a row has, once that is known.
    pub fn new(format: Format, max_bytes: usize, columns: Option<usize>, from: Point) -> Self {
        match format {
            Format::Ndjson => Self::Lines(Lines::new(max_bytes)),
            Format::Json => Self::Array(Array::new(max_bytes, from.index == 0)),
            Format::Csv => Self::Rows(Box::new(Rows::new(max_bytes, columns))),
        }
    }

    /// The next record; none at the content's end.
    pub fn next<'a>(&'a mut self, window: &'a mut Window<'_>) -> Result<Option<Piece<'a>>, Stop> {
        match self {
            Self::Lines(lines) => Ok(lines.next(window)?),
            Self::Array(array) => array.next(window),
            Self::Rows(rows) => Ok(rows.next(window)?),
        }
    }
}

/// The longest record, and the beginning of one that is longer.
struct Limit {
    max_bytes: usize,
    beginning: Vec<u8>,
}

impl Limit {
    fn new(max_bytes: usize) -> Self {
        Self { max_bytes, beginning: Vec::new() }
    }

    /// Keeps the beginning of a record that is known to be too long.
    fn keep(&mut self, record: &[u8]) {
        self.beginning.clear();
        self.beginning.extend_from_slice(&record[..BEGINNING_BYTES.min(self.max_bytes)]);
    }

    fn too_long(&self, line: u64) -> Piece<'_> {
        let flaw = Some(Flaw::TooLong { max_bytes: self.max_bytes });
        Piece { line, raw: &self.beginning, flaw, fields: None }
    }
}
