//! What a table is like, and what it lacks. Pure.

use crate::{
    address::Indexes,
    item::name::{DELIVERY_TIME, MESSAGE_ID, OUTSTANDING, TOPIC, TOPIC_SHARD},
};
use aws_sdk_dynamodb::types::{
    GlobalSecondaryIndexDescription, IndexStatus, KeySchemaElement, KeyType, ProjectionType,
    TableDescription, TableStatus,
};

/// An index that the table must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub name: String,
    pub hash: &'static str,
    pub range: &'static str,
    /// As it stands in what `migrate` says.
    pub applied: &'static str,
}

/// The name that an index of delivered messages gets if Brighter v9 has made another one.
pub(crate) const DELIVERED_V10: &str = "DeliveredV10";

/// A table of messages as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    keys: Vec<(String, bool)>,
    indexes: Vec<Index>,
    is_active: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Index {
    name: String,
    keys: Vec<(String, bool)>,
    is_active: bool,
    has_all: bool,
}

impl Layout {
    pub fn of(table: &TableDescription) -> Self {
        let index = |index: &GlobalSecondaryIndexDescription| Index {
            name: index.index_name().unwrap_or_default().to_owned(),
            keys: keys(index.key_schema()),
            is_active: index.index_status() == Some(&IndexStatus::Active),
            has_all: index.projection().and_then(|it| it.projection_type())
                == Some(&ProjectionType::All),
        };
        Self {
            keys: keys(table.key_schema()),
            indexes: table.global_secondary_indexes().iter().map(index).collect(),
            is_active: table.table_status() == Some(&TableStatus::Active),
        }
    }

    /// Why it can be no outbox, whatever indexes it gets.
    pub fn problem(&self) -> Option<String> {
        if self.keys == [(MESSAGE_ID.to_owned(), true)] {
            return None;
        }
        let names: Vec<&str> = self.keys.iter().map(|(name, _)| name.as_str()).collect();
        Some(format!(
            "it is not an outbox: its key is {}, and an outbox has the hash key {MESSAGE_ID} alone; name another \
             table in the address",
            names.join(" and ")
        ))
    }

    /// Whether an index of outstanding messages has whole messages.
    pub fn has_all(&self, index: &str) -> bool {
        self.indexes.iter().any(|it| it.name == index && it.has_all)
    }

    /// The index of delivered messages by shard, by whatever name.
    pub fn delivered(&self, names: &Indexes) -> Option<&str> {
        let fits = |index: &&Index| {
            index.keys == [(TOPIC_SHARD.to_owned(), true), (DELIVERY_TIME.to_owned(), false)]
        };
        let named = self.indexes.iter().filter(fits).find(|index| index.name == names.delivered);
        named.or_else(|| self.indexes.iter().find(fits)).map(|index| index.name.as_str())
    }

    /// The first index that it lacks. DynamoDB adds one at a time.
    pub fn lacks(&self, names: &Indexes) -> Option<Wanted> {
        wanted(names).into_iter().find_map(|wanted| self.lacks_index(wanted))
    }

    /// An index that it lacks, under the name that it gets.
    pub fn lacks_index(&self, mut wanted: Wanted) -> Option<Wanted> {
        let fits = |index: &Index| {
            index.keys == [(wanted.hash.to_owned(), true), (wanted.range.to_owned(), false)]
        };
        // Delivered messages are read by whatever index fits.
        let by_keys = wanted.range == DELIVERY_TIME && wanted.hash == TOPIC_SHARD;
        if self.indexes.iter().any(|index| fits(index) && (by_keys || index.name == wanted.name)) {
            return None;
        }
        let is_of_v9 = |index: &Index| {
            index.name == wanted.name && index.keys.first() == Some(&(TOPIC.to_owned(), true))
        };
        if by_keys && self.indexes.iter().any(is_of_v9) {
            DELIVERED_V10.clone_into(&mut wanted.name);
        }
        Some(wanted)
    }

    /// An index with the name of one that is wanted, but with other keys.
    pub fn conflict(&self, names: &Indexes) -> Option<String> {
        let lacks = self.lacks(names)?;
        let taken = self.indexes.iter().find(|index| index.name == lacks.name)?;
        let keys: Vec<&str> = taken.keys.iter().map(|(name, _)| name.as_str()).collect();
        Some(format!(
            "its index {} is by {}, and should be by {} and {}: name another one in the address",
            lacks.name,
            keys.join(" and "),
            lacks.hash,
            lacks.range
        ))
    }

    /// Whether the table and all of its indexes can be used.
    pub fn is_ready(&self) -> bool {
        self.is_active && self.indexes.iter().all(|index| index.is_active)
    }

    /// Indexes that are being filled, for people.
    pub fn being_made(&self) -> Vec<&str> {
        let made = self.indexes.iter().filter(|index| !index.is_active);
        made.map(|index| index.name.as_str()).collect()
    }
}

/// All indexes of an outbox.
pub(crate) fn wanted(names: &Indexes) -> [Wanted; 4] {
    let wanted =
        |name: &String, hash, range, applied| Wanted { name: name.clone(), hash, range, applied };
    [
        wanted(
            &names.outstanding,
            TOPIC_SHARD,
            OUTSTANDING,
            "index of outstanding messages by shard",
        ),
        wanted(&names.outstanding_all, OUTSTANDING, MESSAGE_ID, "index of outstanding messages"),
        wanted(
            &names.delivered,
            TOPIC_SHARD,
            DELIVERY_TIME,
            "index of delivered messages by shard",
        ),
        wanted(&names.delivered_all, DELIVERY_TIME, MESSAGE_ID, "index of delivered messages"),
    ]
}

fn keys(schema: &[KeySchemaElement]) -> Vec<(String, bool)> {
    let key = |key: &KeySchemaElement| {
        (key.attribute_name().to_owned(), *key.key_type() == KeyType::Hash)
    };
    let mut keys: Vec<_> = schema.iter().map(key).collect();
    keys.sort_by_key(|(_, is_hash)| !is_hash);
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(name: &str, hash: &str, range: &str) -> Index {
        let keys = vec![(hash.to_owned(), true), (range.to_owned(), false)];
        Index { name: name.to_owned(), keys, is_active: true, has_all: true }
    }

    fn layout(indexes: Vec<Index>) -> Layout {
        Layout { keys: vec![(MESSAGE_ID.to_owned(), true)], indexes, is_active: true }
    }

    #[test]
    fn a_table_of_v9_gets_what_v10_added_one_at_a_time() {
        let names = Indexes::default();
        let mut table = layout(vec![
            index("Outstanding", TOPIC_SHARD, OUTSTANDING),
            index("Delivered", TOPIC, DELIVERY_TIME),
        ]);
        let mut added = Vec::new();
        while let Some(wanted) = table.lacks(&names) {
            assert_eq!(table.conflict(&names), None);
            added.push(wanted.name.clone());
            table.indexes.push(index(&wanted.name, wanted.hash, wanted.range));
        }
        assert_eq!(added, ["OutstandingAllTopics", DELIVERED_V10, "DeliveredAllTopics"]);
    }

    #[test]
    fn a_table_that_is_no_outbox_is_named() {
        let keys = vec![("id".to_owned(), true), ("at".to_owned(), false)];
        let problem = Layout { keys, ..Layout::default() }.problem().unwrap();
        assert!(problem.contains("its key is id and at"), "{problem}");
        assert_eq!(layout(Vec::new()).problem(), None);
        let taken = layout(vec![index("Outstanding", "Other", OUTSTANDING)]);
        assert!(taken.conflict(&Indexes::default()).unwrap().contains("by Other"));
    }
}
