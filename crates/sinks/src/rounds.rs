//! Order per key in systems that answer each item by itself.
//!
//! Items that are sent together may fail apart: the first of a key is refused while its second is
//! taken. So of each key only one is under way at a time, and what follows one that was not done is
//! not sent. Brokers send all rounds in one delivery ([`Rounds`]); where each round is a request that
//! the pacer must know of, a delivery sends the first and leaves the rest to later ones ([`first`]).

use std::{
    collections::{HashMap, HashSet},
    vec::IntoIter,
};
use tidegate_core::sink::{Item, Outcome, Verdict};

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
        round.retain(|&at| self.items[at].order().is_none_or(|key| !self.held.contains(key)));
        // What is in later rounds is behind what was in this one.
        Some(round).filter(|round| !round.is_empty())
    }

    /// Takes a verdict for each item of a round.
    pub fn end(&mut self, round: &[usize], verdicts: impl IntoIterator<Item = Verdict>) {
        for (&at, verdict) in round.iter().zip(verdicts) {
            if verdict != Verdict::Done {
                self.held.extend(self.items[at].order());
            }
            self.verdicts[at] = verdict;
        }
    }

    /// A verdict for each item.
    pub fn verdicts(self) -> Vec<Verdict> {
        self.verdicts
    }
}

/// The places of items that can be sent in one request: of each key the first.
pub fn first(items: &[Item<'_>]) -> Vec<usize> {
    rounds(items).into_iter().next().unwrap_or_default()
}

/// What became of all items, if only those at `sent` were. The others wait behind one of their key.
pub fn spread(outcome: Outcome, sent: &[usize], items: usize) -> Outcome {
    match outcome {
        Outcome::Answered(answers) if sent.len() < items && answers.len() == sent.len() => {
            let mut verdicts = vec![Verdict::Behind; items];
            sent.iter().zip(answers).for_each(|(&at, answer)| verdicts[at] = answer);
            Outcome::Answered(verdicts)
        }
        // The only one that was sent is at fault.
        Outcome::Refused(reason) | Outcome::TooLarge(reason) if sent.len() == 1 && items > 1 => {
            spread(Outcome::Answered(vec![Verdict::Dead(reason)]), sent, items)
        }
        outcome => outcome,
    }
}

/// The places of items, by how many of the same key come before. Those without a key are all first.
fn rounds(items: &[Item<'_>]) -> Vec<Vec<usize>> {
    let mut before: HashMap<&str, usize> = HashMap::new();
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let round = match item.order() {
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
    use proptest::prelude::*;

    proptest! {
        /// Whatever becomes of items, none is sent before what it follows is done.
        #[test]
        fn what_is_sent_follows_what_is_done(
            keys in prop::collection::vec(prop::option::of(0..4_u8), 0..30),
            fates in prop::collection::vec(0..6_u8, 30),
        ) {
            let names: Vec<Option<String>> =
                keys.iter().map(|key| key.map(|key| key.to_string())).collect();
            let names: Vec<Option<&str>> = names.iter().map(Option::as_deref).collect();
            let items = items(&names);
            let fate = |at: usize| match fates[at] {
                0 => Verdict::Retry("no".to_owned()),
                1 => Verdict::Unavailable("no answer".to_owned()),
                2 => Verdict::Throttled { retry_after: None },
                _ => Verdict::Done,
            };
            let mut sent: Vec<usize> = Vec::new();
            let may_go = |at: usize, sent: &[usize]| {
                let before = (0..at).filter(|&it| keys[at].is_some() && keys[it] == keys[at]);
                before.into_iter().all(|it| sent.contains(&it) && fate(it) == Verdict::Done)
            };
            prop_assert!(first(&items).into_iter().all(|at| may_go(at, &[])));
            let mut rounds = Rounds::new(&items);
            while let Some(round) = rounds.begin() {
                prop_assert!(round.iter().all(|&at| may_go(at, &sent)));
                rounds.end(&round, round.iter().map(|&at| fate(at)));
                sent.extend(round);
            }
            for (at, verdict) in rounds.verdicts().into_iter().enumerate() {
                let expected = if may_go(at, &sent) { fate(at) } else { Verdict::Behind };
                prop_assert_eq!(verdict, expected);
            }
        }
    }

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
