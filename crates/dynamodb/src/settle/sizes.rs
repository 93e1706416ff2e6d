//! How large messages are that were read: a transaction takes 4 MB of items, whatever it changes of them. Pure.

use std::collections::HashMap;
use tidegate_core::outbox::{Lane, by_state::Row};

/// Items below this are not remembered: as many of them as a transaction has are far below its bound.
pub(crate) const LARGE: usize = 48 << 10;

/// The sizes of large items, for as long as their messages are with this relay.
#[derive(Debug, Default)]
pub(crate) struct Sizes(HashMap<Row, (Lane, usize)>);

impl Sizes {
    pub fn note(&mut self, row: &Row, lane: Lane, bytes: usize) {
        if bytes >= LARGE {
            self.0.insert(row.clone(), (lane, bytes));
        }
    }

    /// Of a large item; zero of any other.
    pub fn get(&self, row: &Row) -> usize {
        self.0.get(row).map_or(0, |(_, bytes)| *bytes)
    }

    pub fn remove(&mut self, row: &Row) {
        self.0.remove(row);
    }

    pub fn forget(&mut self, lanes: impl Fn(Lane) -> bool) {
        self.0.retain(|_, (lane, _)| !lanes(*lane));
    }
}
