//! The elements of one JSON array, without a stack: brackets are counted, not remembered. Whether
//! an element is right inside, the judge says.

use super::{Limit, Piece, Stop};
use crate::window::Window;
use memchr::memchr2;

pub(crate) struct Array {
    limit: Limit,
    /// Whether no element was cut before: then there is no comma before the next.
    first: bool,
}

impl Array {
    pub fn new(max_bytes: usize, first: bool) -> Self {
        Self { limit: Limit::new(max_bytes), first }
    }

    pub fn next<'a>(&'a mut self, window: &'a mut Window<'_>) -> Result<Option<Piece<'a>>, Stop> {
        if !self.begin_element(window)? {
            return Ok(None);
        }
        let line = window.line();
        match self.measure(window)? {
            Some(0) => Err(broken(line, "expected a value")),
            Some(length) => {
                let raw = window.take(length).trim_ascii();
                Ok(Some(Piece { line, raw, flaw: None, fields: None }))
            }
            None => Ok(Some(self.limit.too_long(line))),
        }
    }

    /// Moves to the next element. Returns false beyond the last one.
    fn begin_element(&mut self, window: &mut Window<'_>) -> Result<bool, Stop> {
        window.skip(is_space)?;
        let first = std::mem::replace(&mut self.first, false);
        match window.bytes().first() {
            None => return Err(broken(window.line(), "the file ends without a `]`")),
            Some(b']') => {
                window.take(1);
                return expect_end(window).map(|()| false);
            }
            Some(b',') if !first => _ = window.take(1),
            Some(_) if first => {}
            Some(_) => return Err(broken(window.line(), "expected `,` or `]`")),
        }
        window.skip(is_space)?;
        Ok(true)
    }

    /// How long the element is. One that is too long is passed over, and has no length.
    fn measure(&mut self, window: &mut Window<'_>) -> Result<Option<usize>, Stop> {
        let line = window.line();
        let mut extent = Extent::default();
        let mut seen = 0;
        let mut too_long = false;
        loop {
            let end = extent.end(&window.bytes()[seen..]);
            let length = end.map_or(window.bytes().len(), |at| seen + at);
            if length > self.limit.max_bytes && !too_long {
                too_long = true;
                self.limit.keep(window.bytes());
            }
            if too_long {
                window.take(length);
            }
            if end.is_some() {
                return Ok((!too_long).then_some(length));
            }
            seen = window.bytes().len();
            if !window.more()? {
                // The judge finds the place in what is left of the file, unless it is too long.
                let reason = "the record that begins there has no end";
                return if too_long { Err(broken(line, reason)) } else { Ok(Some(seen)) };
            }
        }
    }
}

/// Moves beyond the bracket that opens the array.
pub(crate) fn open_array(window: &mut Window<'_>) -> Result<(), Stop> {
    window.skip(is_space)?;
    match window.bytes().first() {
        Some(b'[') => _ = window.take(1),
        Some(_) => {
            return Err(broken(window.line(), "expected `[`; name another format if it is none"));
        }
        None => {}
    }
    Ok(())
}

fn expect_end(window: &mut Window<'_>) -> Result<(), Stop> {
    window.skip(is_space)?;
    if window.bytes().is_empty() {
        return Ok(());
    }
    Err(broken(window.line(), "there is more after its `]`"))
}

fn broken(line: u64, reason: &str) -> Stop {
    Stop::Broken { line, reason: reason.to_owned() }
}

fn is_space(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Finds the end of a value that is seen in parts.
#[derive(Default)]
struct Extent {
    depth: u64,
    in_string: bool,
    escaped: bool,
}

impl Extent {
    /// Where the comma or bracket is that ends the value; none if it goes on beyond these bytes.
    fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            if self.in_string {
                at = self.end_string(bytes, at);
                continue;
            }
            match bytes[at] {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b',' if self.depth == 0 => return Some(at),
                b'}' | b']' if self.depth == 0 => return Some(at),
                b'}' | b']' => self.depth -= 1,
                _ => {}
            }
            at += 1;
        }
        None
    }

    /// Goes on after the string's next quote or escape.
    fn end_string(&mut self, bytes: &[u8], at: usize) -> usize {
        if std::mem::replace(&mut self.escaped, false) {
            return at + 1;
        }
        let Some(found) = memchr2(b'"', b'\\', &bytes[at..]) else { return bytes.len() };
        if bytes[at + found] == b'"' {
            self.in_string = false;
        } else {
            self.escaped = true;
        }
        at + found + 1
    }
}

#[cfg(test)]
mod tests {
    use super::Extent;

    #[test]
    fn a_value_ends_at_the_same_place_however_it_is_read() {
        let text = br#"{"a":[1,{"b,]}":"\"}\\"},"\\"]} ,"#;
        for split in 0..text.len() {
            let mut extent = Extent::default();
            assert_eq!(extent.end(&text[..split]), None, "split at {split}");
            assert_eq!(extent.end(&text[split..]), Some(text.len() - 1 - split));
        }
    }
}
