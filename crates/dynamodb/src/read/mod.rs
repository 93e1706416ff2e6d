//! Finds messages that are outstanding.
//!
//! While everything that is outstanding fits into one page, a parallel scan over all topics finds it, and it is put
//! in order here: as many requests as there are segments, whatever the number of topics and shards. When there is
//! more, a scan is only a sample, in no order. Then it tells which shards have something to read, and these are read
//! by query, in the order of creation; the scan goes on meanwhile, a page at a time, so that a shard with one message
//! is found beside one with a million.

mod finder;
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
    pub found: Found,
}

impl Seen {
    pub fn new(found: Found) -> Option<Self> {
        let outstanding = found.outstanding?;
        Some(Self { row: row(&found.id, outstanding), outstanding, found })
    }
}
