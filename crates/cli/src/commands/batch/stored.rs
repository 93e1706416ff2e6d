//! Stored results in the order of their index.
//!
//! Pages come by their lowest index. Retries make pages that lie inside others: so the entries of a
//! page wait until no later page can hold a lower index. Dense pages do not overlap, which bounds
//! what waits to one of them and the retried runs around it.

use anyhow::{Result, anyhow};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, VecDeque};
use tidegate::{BatchId, OpenStore, Page, inspect::PageQuery};

/// Reading goes on with more pages while they are smaller than this in all …
const SMALL: usize = 1 << 20;
/// … and with fewer when they are larger.
const LARGE: usize = 8 << 20;
const MOST_PAGES: usize = 1_000;

/// A result and its run.
pub type Entry = (u64, Box<RawValue>);

/// Reads the results of a batch.
pub struct Stored<'a> {
    pages: Pages<'a>,
    waiting: BTreeMap<u64, Box<RawValue>>,
    next: Option<Page>,
    from: u64,
}

impl<'a> Stored<'a> {
    /// All results from index `from` on.
    pub fn new(store: &'a OpenStore, batch: BatchId, from: u64) -> Self {
        let pages = Pages::beyond(store, batch, from);
        Self { pages, waiting: BTreeMap::new(), next: None, from }
    }

    /// The next results; none at the end.
    pub async fn next(&mut self) -> Result<Vec<Entry>> {
        loop {
            if let Some(page) = self.next.take() {
                self.take_in(&page)?;
            }
            self.next = self.pages.next().await?;
            let ready = match &self.next {
                Some(page) => {
                    let later = self.waiting.split_off(&page.range.lo);
                    std::mem::replace(&mut self.waiting, later)
                }
                None => std::mem::take(&mut self.waiting),
            };
            if !ready.is_empty() || self.next.is_none() {
                return Ok(ready.into_iter().collect());
            }
        }
    }

    fn take_in(&mut self, page: &Page) -> Result<()> {
        let wanted = entries(page)?.into_iter().filter(|(index, _)| *index >= self.from);
        self.waiting.extend(wanted);
        Ok(())
    }
}

/// The results of a page.
pub fn entries(page: &Page) -> Result<Vec<Entry>> {
    page.entries().ok_or_else(|| anyhow!("the page of results at {} is damaged", page.range.lo))
}

/// The pages of a batch, by their lowest index.
pub struct Pages<'a> {
    store: &'a OpenStore,
    query: PageQuery,
    read: VecDeque<Page>,
}

impl<'a> Pages<'a> {
    /// The pages that may hold results at `index` or later.
    pub fn beyond(store: &'a OpenStore, batch: BatchId, index: u64) -> Self {
        let query = PageQuery { beyond: index, ..PageQuery::first(batch, 4) };
        Self { store, query, read: VecDeque::new() }
    }

    /// The next page.
    pub async fn next(&mut self) -> Result<Option<Page>> {
        if self.read.is_empty() {
            self.read = self.store.pages(self.query.clone()).await?.into();
            let Some(last) = self.read.back() else { return Ok(None) };
            self.query.from = last.range.lo + 1;
            let bytes: usize = self.read.iter().map(|page| page.results.len()).sum();
            self.query.limit = match bytes {
                ..SMALL => (self.query.limit * 2).min(MOST_PAGES),
                SMALL..LARGE => self.query.limit,
                _ => (self.query.limit / 2).max(1),
            };
        }
        Ok(self.read.pop_front())
    }
}

/// The stored result of one run.
pub async fn find(store: &OpenStore, batch: BatchId, index: u64) -> Result<Option<Box<RawValue>>> {
    let mut pages = Pages::beyond(store, batch, index);
    while let Some(page) = pages.next().await?.filter(|page| page.range.lo <= index) {
        if let Some(result) = result_in(&page, index)? {
            return Ok(Some(result));
        }
    }
    Ok(None)
}

fn result_in(page: &Page, index: u64) -> Result<Option<Box<RawValue>>> {
    if page.indexes.as_ref().is_some_and(|indexes| !indexes.contains(&index)) {
        return Ok(None);
    }
    Ok(entries(page)?.into_iter().find(|(i, _)| *i == index).map(|(_, result)| result))
}
