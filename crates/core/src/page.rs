//! The stored results of one settled range.

use crate::Range;
use serde_json::value::RawValue;

/// Results of runs within `range`, as the text of one JSON array: readable with plain SQL, and one
/// row however many runs it covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// All indexes lie inside.
    pub range: Range,
    /// The index of each result; `None` if the page has one result for every index of its range.
    pub indexes: Option<Vec<u64>>,
    /// The results in index order: `[…,…]`.
    pub results: String,
}

impl Page {
    /// Each result with its index; `None` if the stored text is damaged.
    pub fn entries(&self) -> Option<Vec<(u64, Box<RawValue>)>> {
        let results: Vec<Box<RawValue>> = serde_json::from_str(&self.results).ok()?;
        let indexes: Vec<u64> = match &self.indexes {
            Some(indexes) => indexes.clone(),
            None => (self.range.lo..self.range.hi).collect(),
        };
        (indexes.len() == results.len()).then(|| indexes.into_iter().zip(results).collect())
    }
}

/// Gathers results in index order until they are settled.
#[derive(Debug, Default)]
pub struct PageBuilder {
    range: Option<Range>,
    /// Kept only once an index was left out.
    indexes: Option<Vec<u64>>,
    results: Vec<u8>,
}

impl PageBuilder {
    /// Adds the result of run `index`: JSON text.
    pub fn push(&mut self, index: u64, result: &[u8]) {
        self.results.push(if self.range.is_none() { b'[' } else { b',' });
        self.results.extend_from_slice(result);
        let range = self.range.get_or_insert(Range::new(index, index));
        if index != range.hi && self.indexes.is_none() {
            self.indexes = Some((range.lo..range.hi).collect());
        }
        if let Some(indexes) = &mut self.indexes {
            indexes.push(index);
        }
        range.hi = index + 1;
    }

    /// Bytes gathered so far.
    pub fn bytes(&self) -> usize {
        self.results.len()
    }

    /// The page, unless no result was added.
    pub fn build(mut self) -> Option<Page> {
        let range = self.range?;
        self.results.push(b']');
        let results = String::from_utf8(self.results).expect("results are JSON, which is UTF-8");
        Some(Page { range, indexes: self.indexes, results })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(indexes: &[u64], dense: bool) {
        let mut builder = PageBuilder::default();
        indexes.iter().for_each(|i| builder.push(*i, i.to_string().as_bytes()));
        let page = builder.build().unwrap();
        assert_eq!(page.indexes.is_none(), dense);
        let entries = page.entries().unwrap();
        assert!(entries.iter().all(|(index, result)| index.to_string() == result.get()));
        assert_eq!(entries.iter().map(|(index, _)| *index).collect::<Vec<_>>(), indexes);
    }

    #[test]
    fn gives_back_what_was_pushed() {
        check(&[5, 6, 7], true);
        check(&[5, 9], false);
        check(&[5, 6, 9, 10], false);
        assert!(PageBuilder::default().build().is_none());
    }
}
