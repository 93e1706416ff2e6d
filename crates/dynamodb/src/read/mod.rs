//! Finds messages that are outstanding.
//!
//! While everything that is outstanding fits into one page, a parallel scan over all topics finds it, and it is put
//! in order here: as many requests as there are segments, whatever the number of topics and shards. When there is
//! more, a scan is only a sample, in no order. Then it tells which topics have something to read, and their shards
//! are read by query, in the order of creation (`backlog`).

mod backlog;
mod find;
mod finder;
mod merge;
mod pages;
mod pending;
mod recent;

pub(crate) use finder::Finder;

use crate::{item::Found, ticks::Ticks};
use tidegate_core::outbox::by_state::Row;

/// How a message is found again: by its id, and by the time that made it outstanding. A message that is made
/// outstanding once more has another name.
pub(crate) fn row(id: &str, outstanding: Ticks) -> Row {
    format!("{}/{id}", outstanding.0).into()
}

/// What a name says.
pub(crate) fn parse(row: &str) -> Option<(Ticks, &str)> {
    let (ticks, id) = row.split_once('/')?;
    Some((Ticks(ticks.parse().ok()?), id))
}

/// A message that an index shows.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub row: Row,
    pub outstanding: Ticks,
    /// Whether all of it was read, or only what names it and says where it belongs.
    pub is_whole: bool,
    pub found: Found,
}

impl Seen {
    pub fn new(found: Found, is_whole: bool) -> Option<Self> {
        let outstanding = found.outstanding?;
        Some(Self { row: row(&found.id, outstanding), outstanding, is_whole, found })
    }
}
