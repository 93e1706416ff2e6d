//! What a table is like, and what it lacks. Pure.

use crate::{
    address::Indexes,
    item::name::{DELIVERY_TIME, MESSAGE_ID, OUTSTANDING, TOPIC, TOPIC_SHARD},
};
use aws_sdk_dynamodb::types::{
    BillingMode, GlobalSecondaryIndexDescription, IndexStatus, KeySchemaElement, KeyType,
    ProjectionType, TableDescription, TableStatus,
};

/// An index that the table must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub name: String,
    pub hash: &'static str,
    pub range: &'static str,
    /// As it stands in what `migrate` says.
    pub applied: &'static str,
    /// What gives it another name in an address.
    pub setting: &'static str,
}

/// The name that an index of delivered messages gets if Brighter v9 has made another one.
pub(crate) const DELIVERED_V10: &str = "DeliveredV10";

/// A table of messages as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    keys: Vec<(String, bool)>,
    indexes: Vec<Index>,
    is_active: bool,
    provisioned: Option<Units>,
}

/// What a table or an index is provisioned with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Units {
    pub read: i64,
    pub write: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Index {
    name: String,
    keys: Vec<(String, bool)>,
    is_made: bool,
    has_all: bool,
}

impl Layout {
    pub fn of(table: &TableDescription) -> Self {
        let index = |index: &GlobalSecondaryIndexDescription| Index {
            name: index.index_name().unwrap_or_default().to_owned(),
            keys: keys(index.key_schema()),
            is_made: matches!(
                index.index_status(),
                Some(IndexStatus::Active | IndexStatus::Updating)
            ),
            has_all: index.projection().and_then(|it| it.projection_type())
                == Some(&ProjectionType::All),
        };
        Self {
            keys: keys(table.key_schema()),
            indexes: table.global_secondary_indexes().iter().map(index).collect(),
            is_active: table.table_status() == Some(&TableStatus::Active),
            provisioned: units(table),
        }
    }

    /// What the table is provisioned with; `None` if it is on demand. New indexes must be as the table is.
    pub fn provisioned(&self) -> Option<Units> {
        self.provisioned
    }

    /// Why no relay can use the table as it is, whatever is added to it.
    pub fn refusal(&self, names: &Indexes) -> Option<String> {
        self.problem().or_else(|| self.conflict(names))
    }

    /// Why it can be no outbox, whatever indexes it gets.
    fn problem(&self) -> Option<String> {
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

    /// The index of delivered messages by shard, by whatever name.
    pub fn delivered(&self, names: &Indexes) -> Option<&str> {
        let [_, _, wanted, _] = wanted(names);
        let fits = |index: &&Index| index.has_all && wanted.is_by(&index.keys);
        let named = self.indexes.iter().filter(fits).find(|index| index.name == names.delivered);
        named.or_else(|| self.indexes.iter().find(fits)).map(|index| index.name.as_str())
    }

    /// The first index that it lacks. DynamoDB adds one at a time.
    pub fn lacks(&self, names: &Indexes) -> Option<Wanted> {
        wanted(names).into_iter().find_map(|wanted| self.lacks_index(wanted))
    }

    /// An index that it lacks, under the name that it gets.
    pub fn lacks_index(&self, mut wanted: Wanted) -> Option<Wanted> {
        let fits = |index: &Index| index.has_all && wanted.is_by(&index.keys);
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

    /// An index with the name of one that is wanted, but with other keys, or without some attributes of messages: then
    /// neither a message can be read from it, nor what only names one.
    fn conflict(&self, names: &Indexes) -> Option<String> {
        wanted(names).into_iter().find_map(|wanted| {
            let lacks = self.lacks_index(wanted)?;
            let taken = self.indexes.iter().find(|index| index.name == lacks.name)?;
            let (name, setting) = (&lacks.name, lacks.setting);
            let by: Vec<&str> = taken.keys.iter().map(|(name, _)| name.as_str()).collect();
            let problem = match lacks.is_by(&taken.keys) {
                true => format!("its index {name} has not all attributes (its projection is not ALL)"),
                false => format!(
                    "its index {name} is by {}, and should be by {} and {}",
                    by.join(" and "),
                    lacks.hash,
                    lacks.range
                ),
            };
            Some(format!(
                "{problem}: name another one in the address, as in {setting}=NAME, and run `tidegate migrate`, which adds \
                 it"
            ))
        })
    }

    /// Whether there is an index of this name, made or not.
    pub fn has_index(&self, name: &str) -> bool {
        self.indexes.iter().any(|index| index.name == name)
    }

    /// Whether the table and all of its indexes can be used and changed.
    pub fn is_ready(&self) -> bool {
        self.is_active && self.being_made().is_empty()
    }

    /// Indexes that are being filled: nothing can be read from them.
    pub fn being_made(&self) -> Vec<&str> {
        let made = self.indexes.iter().filter(|index| !index.is_made);
        made.map(|index| index.name.as_str()).collect()
    }
}

impl Wanted {
    fn is_by(&self, keys: &[(String, bool)]) -> bool {
        keys == [(self.hash.to_owned(), true), (self.range.to_owned(), false)]
    }
}

/// AWS leaves the mode of a table out that was never on demand; a table on demand has units, and they are zero.
fn units(table: &TableDescription) -> Option<Units> {
    let mode = table.billing_mode_summary().and_then(|it| it.billing_mode());
    let units =
        table.provisioned_throughput().filter(|_| mode != Some(&BillingMode::PayPerRequest));
    let units = units.and_then(|it| {
        let (read, write) = (it.read_capacity_units()?, it.write_capacity_units()?);
        Some(Units { read, write })
    });
    units.filter(|units| units.read > 0 && units.write > 0)
}

/// All indexes of an outbox.
pub(crate) fn wanted(names: &Indexes) -> [Wanted; 4] {
    let by_shard = |name: &String, range, applied, setting| Wanted {
        name: name.clone(),
        hash: TOPIC_SHARD,
        range,
        applied,
        setting,
    };
    let of_all = |name: &String, hash, applied, setting| Wanted {
        name: name.clone(),
        hash,
        range: MESSAGE_ID,
        applied,
        setting,
    };
    [
        by_shard(
            &names.outstanding,
            OUTSTANDING,
            "index of outstanding messages by shard",
            "outstanding_index",
        ),
        of_all(
            &names.outstanding_all,
            OUTSTANDING,
            "index of outstanding messages",
            "outstanding_all_topics_index",
        ),
        by_shard(
            &names.delivered,
            DELIVERY_TIME,
            "index of delivered messages by shard",
            "delivered_index",
        ),
        of_all(
            &names.delivered_all,
            DELIVERY_TIME,
            "index of delivered messages",
            "delivered_all_topics_index",
        ),
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
pub(super) mod tests {
    use super::*;

    /// A table as Brighter v9 made it.
    pub fn of_v9(provisioned: Option<Units>) -> Layout {
        let indexes = vec![
            index("Outstanding", TOPIC_SHARD, OUTSTANDING),
            index("Delivered", TOPIC, DELIVERY_TIME),
        ];
        Layout { provisioned, ..layout(indexes) }
    }

    fn index(name: &str, hash: &str, range: &str) -> Index {
        let keys = vec![(hash.to_owned(), true), (range.to_owned(), false)];
        Index { name: name.to_owned(), keys, is_made: true, has_all: true }
    }

    fn layout(indexes: Vec<Index>) -> Layout {
        let keys = vec![(MESSAGE_ID.to_owned(), true)];
        Layout { keys, indexes, is_active: true, provisioned: None }
    }

    #[test]
    fn a_table_of_v9_gets_what_v10_added_one_at_a_time() {
        let names = Indexes::default();
        let mut table = of_v9(None);
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

    fn whole() -> Vec<Index> {
        let index = |it: Wanted| index(&it.name, it.hash, it.range);
        wanted(&Indexes::default()).into_iter().map(index).collect()
    }

    #[test]
    fn an_index_without_all_attributes_is_refused_until_another_is_named() {
        for at in 0..4 {
            let names = Indexes::default();
            let mut table = layout(whole());
            assert_eq!((table.refusal(&names), table.lacks(&names)), (None, None));
            table.indexes[at].has_all = false;
            let refusal = table.refusal(&names).unwrap();
            let setting = wanted(&names)[at].setting;
            for word in ["its projection is not ALL", &format!("{setting}=NAME"), "migrate"] {
                assert!(refusal.contains(word), "{refusal}");
            }
            let mut others = names;
            let name = match at {
                0 => &mut others.outstanding,
                1 => &mut others.outstanding_all,
                2 => &mut others.delivered,
                _ => &mut others.delivered_all,
            };
            "Whole".clone_into(name);
            assert_eq!(table.refusal(&others), None);
            assert_eq!(table.lacks(&others).unwrap().name, "Whole");
        }
    }

    #[test]
    fn every_index_is_looked_at_for_conflicts() {
        let names = Indexes::default();
        let mut table = layout(whole());
        table.indexes[3].keys[0].0 = "Other".to_owned();
        table.indexes.remove(0);
        let refusal = table.refusal(&names).unwrap();
        assert!(refusal.contains("DeliveredAllTopics is by Other"), "{refusal}");
    }

    #[test]
    fn an_index_that_is_being_filled_is_not_ready() {
        let mut table = layout(whole());
        assert!(table.is_ready());
        table.indexes[1].is_made = false;
        assert_eq!((table.is_ready(), table.being_made()), (false, vec!["OutstandingAllTopics"]));
    }
}
