//! One record per line that is not blank.

use super::{Limit, Piece};
use crate::{RecordsError, window::Window};
use memchr::memchr;

pub(crate) struct Lines {
    limit: Limit,
}

/// What the window begins with.
enum Line {
    /// So many bytes, with the line's end.
    Whole(usize),
    Blank(usize),
    TooLong,
    None,
}

impl Lines {
    pub fn new(max_bytes: usize) -> Self {
        Self { limit: Limit::new(max_bytes) }
    }

    pub fn next<'a>(
        &'a mut self,
        window: &'a mut Window<'_>,
    ) -> Result<Option<Piece<'a>>, RecordsError> {
        loop {
            let line = window.line();
            match self.measure(window)? {
                Line::None => return Ok(None),
                Line::Blank(length) => _ = window.take(length),
                Line::Whole(length) => {
                    let raw = window.take(length).trim_ascii();
                    return Ok(Some(Piece { line, raw, flaw: None, fields: None }));
                }
                Line::TooLong => {
                    self.limit.keep(window.bytes());
                    skip_line(window)?;
                    return Ok(Some(self.limit.too_long(line)));
                }
            }
        }
    }

    fn measure(&self, window: &mut Window<'_>) -> Result<Line, RecordsError> {
        let mut searched = 0;
        loop {
            let bytes = window.bytes();
            if let Some(at) = memchr(b'\n', &bytes[searched..]) {
                return Ok(self.classify(&bytes[..searched + at], 1));
            }
            searched = bytes.len();
            if searched > self.limit.max_bytes {
                return Ok(Line::TooLong);
            }
            if !window.more()? {
                return Ok(self.classify(window.bytes(), 0));
            }
        }
    }

    fn classify(&self, text: &[u8], end: usize) -> Line {
        let length = text.len() + end;
        if length == 0 {
            Line::None
        } else if text.len() > self.limit.max_bytes {
            Line::TooLong
        } else if text.iter().all(u8::is_ascii_whitespace) {
            Line::Blank(length)
        } else {
            Line::Whole(length)
        }
    }
}

fn skip_line(window: &mut Window<'_>) -> Result<(), RecordsError> {
    loop {
        let held = window.bytes().len();
        let end = memchr(b'\n', window.bytes());
        window.take(end.map_or(held, |at| at + 1));
        if end.is_some() || !window.more()? {
            return Ok(());
        }
    }
}
