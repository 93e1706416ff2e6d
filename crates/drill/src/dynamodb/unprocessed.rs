//! Entries of batches that are handed back instead of being carried out.

use super::call::Call;
use serde_json::{Map, Value};

/// The entries that are held back from a batch, in the form that the answer has them.
#[derive(Debug, Default, PartialEq)]
pub struct HeldBack {
    tables: Map<String, Value>,
    pub count: u64,
    /// Whether nothing is left to be carried out.
    pub all: bool,
}

/// Takes those entries out of a batch for which `chosen` says so. Other requests stay as they are.
pub fn hold_back(call: &mut Call, mut chosen: impl FnMut() -> bool) -> HeldBack {
    let mut held = HeldBack::default();
    if field(&call.operation).is_none() {
        return held;
    }
    let tables = call.body.get_mut("RequestItems").and_then(Value::as_object_mut);
    let Some(tables) = tables else { return held };
    for (table, entries) in &mut *tables {
        let Some(list) = entries_of(entries) else { continue };
        let (back, left) = std::mem::take(list).into_iter().partition::<Vec<_>, _>(|_| chosen());
        *list = left;
        if !back.is_empty() {
            held.count += back.len() as u64;
            // What else is said of the table, such as a projection, goes back with it.
            let mut returned = entries.clone();
            entries_of(&mut returned).into_iter().for_each(|list| list.clone_from(&back));
            held.tables.insert(table.clone(), returned);
        }
    }
    tables.retain(|_, entries| entries_of(entries).is_none_or(|list| !list.is_empty()));
    held.all = held.count > 0 && tables.is_empty();
    held
}

impl HeldBack {
    /// Adds them to those that the server itself did not process.
    pub fn return_in(self, operation: &str, answer: &mut Map<String, Value>) {
        let Some(field) = field(operation).filter(|_| self.count > 0) else { return };
        let unprocessed = answer.entry(field).or_insert_with(|| Map::new().into());
        let Some(unprocessed) = unprocessed.as_object_mut() else { return };
        for (table, mut entries) in self.tables {
            let list = entries_of(&mut entries).map(std::mem::take).unwrap_or_default();
            let theirs = unprocessed.entry(table).or_insert(entries);
            entries_of(theirs).into_iter().for_each(|theirs| theirs.extend(list.iter().cloned()));
        }
    }
}

/// What an answer calls them.
fn field(operation: &str) -> Option<&'static str> {
    match operation {
        "BatchWriteItem" => Some("UnprocessedItems"),
        "BatchGetItem" => Some("UnprocessedKeys"),
        _ => None,
    }
}

/// A table's list of writes, or of keys to get.
fn entries_of(entries: &mut Value) -> Option<&mut Vec<Value>> {
    match entries {
        Value::Array(writes) => Some(writes),
        gets => gets.get_mut("Keys")?.as_array_mut(),
    }
}
