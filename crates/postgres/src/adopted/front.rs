//! From where on pending rows are read: pure bookkeeping.
//!
//! A row that was set aside stays pending, and a claim that began at the first pending row would pass all of them
//! each time. So looks in pages find out up to where everything was set aside: the front. Claims begin there. A row
//! behind the front that was not set aside (it was committed late, or somebody wants it again) is found by a sweep,
//! which goes through everything behind the front again and again, a page at a time.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};
use tidegate_core::Fence;

/// Rows that one look passes.
pub(super) const PAGE: usize = 2_000;

/// Rows behind the front that wait to be claimed.
pub(super) const MOST_LATE: usize = 500;

/// The next look comes after this, and after so many times what the last one took: claims wait for it.
const PAUSE: Duration = Duration::from_millis(200);
const TIMES: u32 = 20;

/// A place in the order of rows: the texts of the order's columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Place {
    pub texts: Vec<String>,
    /// Whether the rows at the place itself are behind it.
    pub after: bool,
}

/// What a look found.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub rows: usize,
    pub last: Option<Vec<String>>,
    /// Rows that were not set aside.
    pub others: Vec<String>,
    /// Those among them that are behind the front.
    pub late: Vec<String>,
    /// Whether the last row is behind the front.
    pub is_behind: bool,
}

impl Page {
    fn is_full(&self) -> bool {
        self.rows >= PAGE
    }

    /// All its rows are at the place where it began.
    pub(super) fn is_stuck(&self, begun: Option<&Place>) -> bool {
        self.is_full() && begun.is_some_and(|it| !it.after && Some(&it.texts) == self.last.as_ref())
    }
}

pub(super) struct Front {
    /// The lease; what was found under another says nothing.
    fence: Fence,
    /// `None`: the beginning.
    front: Option<Place>,
    /// Up to here everything was set aside, too. The front follows a page behind: what is committed a little late is
    /// not behind it.
    ahead: Option<Place>,
    sweep: Option<Place>,
    late: BTreeSet<String>,
    next: Option<Instant>,
}

impl Default for Front {
    fn default() -> Self {
        Self::new(Fence::NOBODY)
    }
}

impl Front {
    fn new(fence: Fence) -> Self {
        let (front, ahead, sweep, late, next) = Default::default();
        Self { fence, front, ahead, sweep, late, next }
    }

    /// A new lease: rows are read from the beginning.
    pub(super) fn begin(&mut self, fence: Fence) {
        if self.fence != fence {
            *self = Self::new(fence);
        }
    }

    pub(super) fn fence(&self) -> Fence {
        self.fence
    }

    pub(super) fn place(&self) -> Option<&Place> {
        self.front.as_ref()
    }

    pub(super) fn ahead(&self) -> Option<&Place> {
        self.ahead.as_ref()
    }

    /// Where the sweep goes on; `None` if there is nothing to sweep, or no room for what it finds.
    pub(super) fn sweep(&self) -> Option<Option<&Place>> {
        (self.front.is_some() && self.late.len() < MOST_LATE).then_some(self.sweep.as_ref())
    }

    pub(super) fn late(&self) -> Vec<String> {
        self.late.iter().take(MOST_LATE).cloned().collect()
    }

    pub(super) fn forget_late(&mut self, row_key: &str) {
        self.late.remove(row_key);
    }

    /// Whether it is time to look.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.next.is_none_or(|next| now >= next)
    }

    pub(super) fn rest(&mut self, begun: Instant, now: Instant) {
        self.next = Some(now + PAUSE.max((now - begun) * TIMES));
    }

    /// Learns from a look ahead. Whether there may be more.
    pub(super) fn looked(&mut self, page: &Page) -> bool {
        let next = match (&page.last, page.is_full() && page.others.is_empty()) {
            (Some(last), true) => Place { texts: last.clone(), after: false },
            _ => return false,
        };
        if page.is_stuck(self.ahead.as_ref()) {
            return false;
        }
        self.front = self.ahead.replace(next);
        true
    }

    /// Everything at the place ahead was set aside: the front goes behind it, or claims would pass all of that.
    pub(super) fn pass_ties(&mut self) {
        if let Some(ahead) = &mut self.ahead {
            ahead.after = true;
            self.front = Some(ahead.clone());
        }
    }

    /// Learns from a page of the sweep.
    pub(super) fn swept(&mut self, page: Page) {
        let begins = self.sweep.is_none();
        if begins {
            self.late.clear();
        }
        let after = page.is_stuck(self.sweep.as_ref());
        let goes_on = page.is_full() && page.is_behind;
        self.late.extend(page.late);
        self.sweep = page.last.filter(|_| goes_on).map(|texts| Place { texts, after });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(rows: usize, last: &str) -> Page {
        Page { rows, last: Some(vec![last.to_owned()]), is_behind: true, ..Page::default() }
    }

    fn at(text: &str) -> Place {
        Place { texts: vec![text.to_owned()], after: false }
    }

    #[test]
    fn the_front_follows_a_page_behind_what_was_set_aside() {
        let mut front = Front::default();
        assert!(front.looked(&page(PAGE, "1")) && front.place().is_none());
        assert!(front.looked(&page(PAGE, "2")));
        assert_eq!((front.place(), front.ahead()), (Some(&at("1")), Some(&at("2"))));
        let others = vec!["x".to_owned()];
        assert!(!front.looked(&Page { others, ..page(PAGE, "3") }), "one was not set aside");
        assert!(!front.looked(&page(PAGE - 1, "3")), "it is the end");
        assert_eq!(front.place(), Some(&at("1")));
    }

    #[test]
    fn many_rows_at_one_place_are_passed_together() {
        let mut front = Front::default();
        front.looked(&page(PAGE, "1"));
        assert!(!front.looked(&page(PAGE, "1")) && front.place().is_none());
        front.pass_ties();
        let after = Place { after: true, ..at("1") };
        assert_eq!((front.place(), front.ahead()), (Some(&after), Some(&after)));
        assert!(front.looked(&page(PAGE, "2")));
    }

    #[test]
    fn a_sweep_begins_again_at_the_front_and_remembers_what_is_late() {
        let mut front = Front::default();
        assert_eq!(front.sweep(), None);
        (1..=3).for_each(|n| assert!(front.looked(&page(PAGE, &n.to_string()))));
        front.swept(Page { late: vec!["a".to_owned()], ..page(PAGE, "1") });
        assert_eq!((front.sweep(), front.late().len()), (Some(Some(&at("1"))), 1));
        front.swept(page(PAGE, "1"));
        assert_eq!(front.sweep(), Some(Some(&Place { after: true, ..at("1") })));
        front.swept(Page { is_behind: false, ..page(PAGE, "2") });
        assert_eq!((front.sweep(), front.late().len()), (Some(None), 1));
        front.swept(page(PAGE, "1"));
        assert_eq!(front.late().len(), 0, "whatever still is will be found again");
    }
}
