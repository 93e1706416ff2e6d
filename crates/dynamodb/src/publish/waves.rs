//! In which parts many messages are written, so that of each key none is there before an earlier one. Pure.

use crate::item::{
    Item, get_text,
    name::{PARTITION_KEY, TOPIC},
};
use std::collections::HashMap;

/// A wave of fewer messages is better a part of a transaction: that is one request for as many, and in order.
const WORTH_A_WAVE: usize = 100;

/// Parts that are written one after the other. Messages are named by their numbers.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Parts {
    /// Messages of which no two have a key in common: they may be written in any order, and beside each other.
    pub waves: Vec<Vec<usize>>,
    /// All others, in their order.
    pub rest: Vec<usize>,
}

/// The first wave has the first message of each key, the second wave the second one, and so on.
pub(super) fn parts<'a>(items: impl Iterator<Item = &'a Item>) -> Parts {
    let mut waves: Vec<Vec<usize>> = Vec::new();
    let mut seen: HashMap<(&str, &str), usize> = HashMap::new();
    for (number, item) in items.enumerate() {
        let wave = get_text(item, PARTITION_KEY).map_or(0, |key| {
            let seen = seen.entry((get_text(item, TOPIC).unwrap_or_default(), key)).or_default();
            *seen += 1;
            *seen - 1
        });
        if waves.len() <= wave {
            waves.resize_with(wave + 1, Vec::new);
        }
        waves[wave].push(number);
    }
    // No wave has more messages of keys than the one before it.
    let worth = waves.iter().take_while(|wave| wave.len() >= WORTH_A_WAVE).count();
    let mut rest: Vec<usize> = waves.split_off(worth).into_iter().flatten().collect();
    rest.sort_unstable();
    Parts { waves, rest }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::text;
    use proptest::prelude::*;

    fn items(keys: &[Option<u8>]) -> Vec<Item> {
        let item = |key: &Option<u8>| {
            let topic = key.map_or(0, |key| key % 2);
            let mut item = Item::from([(TOPIC.to_owned(), text(format!("t{topic}")))]);
            item.extend(key.map(|key| (PARTITION_KEY.to_owned(), text(format!("k{}", key / 2)))));
            item
        };
        keys.iter().map(item).collect()
    }

    proptest! {
        #[test]
        fn of_each_key_messages_are_written_in_their_order(
            keys in prop::collection::vec(prop::option::weighted(0.9, any::<u8>()), 0..1_500),
        ) {
            let Parts { waves, rest } = parts(items(&keys).iter());
            let mut all: Vec<usize> = waves.iter().flatten().chain(&rest).copied().collect();
            for key in 0..=u8::MAX {
                let line = all.iter().filter(|number| keys[**number] == Some(key));
                prop_assert!(line.is_sorted());
            }
            for wave in &waves {
                let mut keys: Vec<u8> = wave.iter().filter_map(|number| keys[*number]).collect();
                let count = keys.len();
                keys.sort_unstable();
                keys.dedup();
                prop_assert_eq!(keys.len(), count, "no key is twice in a wave");
                prop_assert!(wave.len() >= WORTH_A_WAVE);
            }
            all.sort_unstable();
            prop_assert_eq!(all, (0..keys.len()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn messages_of_few_keys_are_left_for_transactions() {
        let one = vec![Some(7); 500];
        let parts = parts(items(&one).iter());
        assert_eq!((parts.waves.len(), parts.rest), (0, (0..500).collect()));
    }
}
