//! Pages of a topic's shards, in one order. Pure.

use super::{Seen, backlog::Query, pages::Page, parse};
use crate::{
    item::{
        Item, get_number,
        name::{MESSAGE_ID, OUTSTANDING, TOPIC_SHARD},
        number, text,
    },
    ticks::Ticks,
};
use std::collections::HashMap;
use tidegate_core::outbox::by_state::Row;

/// A page of one shard.
#[derive(Debug)]
pub(super) struct ShardPage {
    pub query: Query,
    /// In the order of the index.
    pub rows: Vec<Row>,
    /// Where the next page begins.
    pub next: Option<Item>,
    /// Whether messages at its end were left out.
    pub is_cut: bool,
}

/// Puts the messages of all shards in order. A shard that has more ends at a certain time, and what is behind that in
/// other shards of the topic is left out: the first shard may have earlier messages of the same key.
pub(super) fn merge(pages: Vec<(Query, Page)>) -> (Vec<Seen>, Vec<ShardPage>) {
    let mut ends: HashMap<String, Ticks> = HashMap::new();
    for (query, page) in &pages {
        if let Some(end) = page.next.as_ref().and_then(time_of) {
            let topic = ends.entry(query.topic.clone()).or_insert(end);
            *topic = end.min(*topic);
        }
    }
    let (mut seen, mut shards) = (Vec::new(), Vec::new());
    for (query, Page { seen: mut found, next }) in pages {
        let before = found.len();
        if let Some(end) = ends.get(&query.topic) {
            found.truncate(found.partition_point(|it| it.outstanding <= *end));
        }
        let rows = found.iter().map(|it| it.row.clone()).collect();
        shards.push(ShardPage { query, rows, next, is_cut: found.len() < before });
        seen.extend(found);
    }
    // Stable: messages of one shard with the same time stay as they are in the index.
    seen.sort_by_key(|it| it.outstanding);
    (seen, shards)
}

/// The place of a message in the index of its shard.
pub(super) fn place_of(shard: &str, row: &Row) -> Option<Item> {
    let (outstanding, id) = parse(row)?;
    Some(Item::from([
        (TOPIC_SHARD.to_owned(), text(shard)),
        (OUTSTANDING.to_owned(), number(outstanding.0)),
        (MESSAGE_ID.to_owned(), text(id)),
    ]))
}

/// The time in such a place.
pub(super) fn time_of(place: &Item) -> Option<Ticks> {
    get_number(place, OUTSTANDING).map(Ticks)
}
