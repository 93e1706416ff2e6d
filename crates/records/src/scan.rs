//! The scan: every record is counted and judged, and some places are remembered.

use crate::{
    Format, RecordsError,
    cut::{Cutter, Piece, Rows, Stop, open_array},
    index::Index,
    judge::{Flaw, judge},
    record::MalformedList,
    window::Window,
};
use std::{collections::BTreeSet, path::Path};

/// A format must show within so many bytes.
const BEGINNING_BYTES: usize = 64 * 1024;

/// What is known of the records after the scan.
pub(crate) struct Scan {
    pub len: u64,
    pub index: Index,
    pub malformed: MalformedList,
    /// The field names of rows.
    pub names: Vec<String>,
}

/// Skips the byte order mark.
pub(crate) fn begin(window: &mut Window<'_>, name: &str) -> Result<(), RecordsError> {
    window.ensure(3)?;
    match window.bytes() {
        [0xef, 0xbb, 0xbf, ..] => _ = window.take(3),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
            return Err(RecordsError::Utf16 { name: name.to_owned() });
        }
        _ => {}
    }
    Ok(())
}

/// Which format it is: what the caller says, else the name, else the beginning. A `.json` file may
/// well hold lines of objects.
pub(crate) fn tell_format(
    window: &mut Window<'_>,
    named: Option<Format>,
    path: Option<&Path>,
    name: &str,
) -> Result<Format, RecordsError> {
    let by_name = path.and_then(Format::of_name);
    window.ensure(BEGINNING_BYTES)?;
    let first = window.bytes().iter().find(|byte| !byte.is_ascii_whitespace());
    if first.is_none() && window.bytes().len() < BEGINNING_BYTES {
        return Err(RecordsError::Empty { name: name.to_owned() });
    }
    named
        .or(by_name.filter(|format| *format != Format::Json))
        .or(first.copied().and_then(Format::of_content))
        .or(by_name)
        .ok_or_else(|| RecordsError::UnknownFormat { name: name.to_owned() })
}

/// Goes through all records.
pub(crate) fn scan(
    window: &mut Window<'_>,
    format: Format,
    max_bytes: usize,
    name: &str,
) -> Result<Scan, RecordsError> {
    let explain = |stop| match stop {
        Stop::Failed(error) => error,
        Stop::Broken { line, reason } => {
            RecordsError::Array { name: name.to_owned(), line, reason }
        }
    };
    let mut names = Vec::new();
    match format {
        Format::Ndjson => {}
        Format::Json => open_array(window).map_err(explain)?,
        Format::Csv => names = header(window, max_bytes, name)?,
    }
    let first = window.point(0);
    let mut cutter = Cutter::new(format, max_bytes, Some(names.len()), first);
    let mut scan = Scan { len: 0, index: Index::new(first), malformed: Default::default(), names };
    while let Some(piece) = cutter.next(window).map_err(explain)? {
        scan.count(piece, format).map_err(explain)?;
        scan.index.pass(window.point(scan.len));
    }
    Ok(scan)
}

impl Scan {
    fn count(&mut self, piece: Piece<'_>, format: Format) -> Result<(), Stop> {
        let line = piece.line;
        match judge(piece, self.names.len()) {
            Ok(_) => {}
            // Where brackets do not match, no later comma can be trusted.
            Err(Flaw::Syntax { lines, column, message }) if format == Format::Json => {
                let of = if lines == 0 { " of the record" } else { "" };
                let reason = format!("{message} at column {column}{of}");
                return Err(Stop::Broken { line: line + lines, reason });
            }
            Err(flaw) => self.malformed.add(self.len, line, flaw),
        }
        self.len += 1;
        Ok(())
    }
}

/// The field names of rows.
fn header(
    window: &mut Window<'_>,
    max_bytes: usize,
    name: &str,
) -> Result<Vec<String>, RecordsError> {
    let mut rows = Rows::new(max_bytes, None);
    let empty = || RecordsError::Empty { name: name.to_owned() };
    let piece = rows.next(window)?.ok_or_else(empty)?;
    let line = piece.line;
    field_names(piece).map_err(|reason| RecordsError::Header {
        name: name.to_owned(),
        line,
        reason,
    })
}

fn field_names(piece: Piece<'_>) -> Result<Vec<String>, String> {
    if let Some(flaw) = piece.flaw {
        return Err(flaw.to_string());
    }
    let mut names = Vec::new();
    let mut seen = BTreeSet::new();
    for field in piece.fields.into_iter().flat_map(|fields| fields.iter()) {
        let name = String::from_utf8(field.to_vec()).map_err(|_| "it is not UTF-8".to_owned())?;
        if !seen.insert(name.clone()) {
            return Err(format!("two fields have the name `{name}`"));
        }
        names.push(name);
    }
    if let [only] = names.as_slice()
        && let Some(separator) =
            only.chars().find(|character| matches!(character, ';' | '\t' | '|'))
    {
        let separator =
            if separator == '\t' { "tabs".to_owned() } else { format!("`{separator}`") };
        return Err(format!("its fields are separated by {separator}: use commas"));
    }
    Ok(names)
}
