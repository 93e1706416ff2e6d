//! Entries → calls that fit the limits.

use super::{config::MAX_GROUP, entry::Entry};
use std::collections::{HashMap, VecDeque};

/// One request: entries for one queue or topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub place: String,
    pub entries: Vec<Entry>,
    /// For each entry, which item it is.
    pub items: Vec<usize>,
}

impl Call {
    /// A call without entries would be refused.
    fn of_one(place: String, item: usize, entry: Entry) -> Self {
        Self { place, entries: vec![entry], items: vec![item] }
    }

    fn size(&self) -> usize {
        self.entries.iter().map(Entry::size).sum()
    }

    /// Two calls, if it has more than one entry: one of them is refused for less.
    pub fn halves(mut self) -> [Self; 2] {
        let middle = self.entries.len() / 2;
        let (entries, items) = (self.entries.split_off(middle), self.items.split_off(middle));
        let second = Self { place: self.place.clone(), entries, items };
        [self, second]
    }
}

/// Calls of at most ten entries and `limit` bytes. No entry is larger than that.
pub fn pack(ready: Vec<(usize, String, Entry)>, limit: usize) -> VecDeque<Call> {
    let mut calls: VecDeque<Call> = VecDeque::new();
    // The call of each place that still has room.
    let mut open: HashMap<String, usize> = HashMap::new();
    for (item, place, entry) in ready {
        let call = open.get(&place).and_then(|&at| calls.get_mut(at));
        match call.filter(|it| it.entries.len() < MAX_GROUP && it.size() + entry.size() <= limit) {
            Some(call) => {
                call.entries.push(entry);
                call.items.push(item);
            }
            None => {
                open.insert(place.clone(), calls.len());
                calls.push_back(Call::of_one(place, item, entry));
            }
        }
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(size: usize) -> Entry {
        Entry { body: "x".repeat(size), attributes: Vec::new(), subject: None, fifo: None }
    }

    fn packed(sizes: &[usize], limit: usize) -> Vec<Vec<usize>> {
        let ready = sizes.iter().enumerate().map(|(at, size)| (at, "q".to_owned(), entry(*size)));
        pack(ready.collect(), limit).into_iter().map(|call| call.items).collect()
    }

    #[test]
    fn a_call_holds_ten_entries_and_as_many_bytes_as_the_limit() {
        assert_eq!(packed(&[1; 11], 100), [(0..10).collect(), vec![10]]);
        assert_eq!(packed(&[60, 40], 100), [[0, 1]]);
        assert_eq!(packed(&[60, 41], 100), [[0], [1]]);
        assert_eq!(packed(&[100, 100], 100), [[0], [1]]);
        assert_eq!(packed(&[], 100), Vec::<Vec<usize>>::new());
    }

    #[test]
    fn a_call_goes_to_one_place() {
        let ready =
            [(0, "a"), (1, "b"), (2, "a")].map(|(at, place)| (at, place.to_owned(), entry(1)));
        let calls = pack(ready.to_vec(), 100);
        let found: Vec<_> = calls.iter().map(|it| (it.place.as_str(), it.items.clone())).collect();
        assert_eq!(found, [("a", vec![0, 2]), ("b", vec![1])]);
    }

    #[test]
    fn halves_hold_all_entries_once() {
        let ready = (0..5).map(|at| (at, "q".to_owned(), entry(at))).collect();
        let [first, second] = pack(ready, 100).remove(0).unwrap().halves();
        assert_eq!((first.items, second.items), (vec![0, 1], vec![2, 3, 4]));
        assert_eq!(second.entries.iter().map(Entry::size).collect::<Vec<_>>(), [2, 3, 4]);
    }

    proptest! {
        #[test]
        fn every_entry_is_in_one_call_and_every_call_fits(
            sizes in prop::collection::vec(0..=100_usize, 0..30),
        ) {
            let calls = packed(&sizes, 100);
            let bytes = |call: &Vec<usize>| call.iter().map(|&at| sizes[at]).sum::<usize>();
            prop_assert!(calls.iter().all(|call| (1..=10).contains(&call.len()) && bytes(call) <= 100));
            prop_assert_eq!(calls.concat(), (0..sizes.len()).collect::<Vec<_>>());
        }
    }
}
