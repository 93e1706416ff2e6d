//! Order per key in systems that answer each item by itself.
//!
//! Items that are sent together may fail apart: the first of a key is refused while its second is
//! taken. So of each key only one is under way at a time, and what follows one that was not done is
//! not sent.

use std::{
    collections::{HashMap, HashSet},
    vec::IntoIter,
};
use tidegate_core::sink::{Item, Verdict};

/// Items on their way: the first of every key, then the second ones, and so on.
#[derive(Debug)]
pub struct Rounds<'a> {
    items: &'a [Item<'a>],
    /// The places of the items of each round that is still to come.
    rounds: IntoIter<Vec<usize>>,
    /// Keys of which one was not done.
    held: HashSet<&'a str>,
    verdicts: Vec<Verdict>,
}

impl<'a> Rounds<'a> {
    /// Nothing was sent yet.
    pub fn new(items: &'a [Item<'a>]) -> Self {
        let verdicts = vec![Verdict::Behind; items.len()];
        Self { items, rounds: rounds(items).into_iter(), held: HashSet::new(), verdicts }
    }

    /// The places of the items to send together, if there is anything left to send.
    pub fn begin(&mut self) -> Option<Vec<usize>> {
        let mut round = self.rounds.next()?;
        round.retain(|&at| self.items[at].key.is_none_or(|key| !self.held.contains(key)));
        // What is in later rounds is behind what was in this one.
        Some(round).filter(|round| !round.is_empty())
    }

    /// Takes a verdict for each item of a round.
    pub fn end(&mut self, round: &[usize], verdicts: impl IntoIterator<Item = Verdict>) {
        for (&at, verdict) in round.iter().zip(verdicts) {
            if verdict != Verdict::Done {
                self.held.extend(self.items[at].key);
            }
            self.verdicts[at] = verdict;
        }
    }

    /// A verdict for each item.
    pub fn verdicts(self) -> Vec<Verdict> {
        self.verdicts
    }
}

/// The places of items, by how many of the same key come before. Those without a key are all first.
fn rounds(items: &[Item<'_>]) -> Vec<Vec<usize>> {
    let mut before: HashMap<&str, usize> = HashMap::new();
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let round = match item.key {
            None => 0,
            Some(key) => {
                let before = before.entry(key).or_default();
                *before += 1;
                *before - 1
            }
        };
        if rounds.len() <= round {
            rounds.resize(round + 1, Vec::new());
        }
        rounds[round].push(at);
    }
    rounds
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items<'a>(keys: &[Option<&'a str>]) -> Vec<Item<'a>> {
        keys.iter().map(|key| Item { key: *key, ..Item::record("1", "{}") }).collect()
    }

    #[test]
    fn nothing_is_sent_after_one_of_its_key_that_was_not_done() {
        let items = items(&[Some("a"), Some("b"), Some("a"), None, Some("b"), Some("a")]);
        let mut sent: Vec<Vec<usize>> = Vec::new();
        let mut rounds = Rounds::new(&items);
        while let Some(round) = rounds.begin() {
            let bad =
                |&at: &usize| if at == 1 { Verdict::Retry("no".into()) } else { Verdict::Done };
            rounds.end(&round, round.iter().map(bad));
            sent.push(round);
        }
        assert_eq!(sent, [vec![0, 1, 3], vec![2], vec![5]]);
        let (retry, done) = (Verdict::Retry("no".into()), Verdict::Done);
        let expected = [done.clone(), retry, done.clone(), done.clone(), Verdict::Behind, done];
        assert_eq!(rounds.verdicts(), expected);
    }
}
