//! Order per key in systems that answer each item by itself.
//!
//! Items that are sent together may fail apart: the first of a key is refused while its second is
//! taken. So of each key only one is under way at a time, and what follows one that was not done is
//! not sent.

use std::collections::{HashMap, HashSet};
use tidegate_core::sink::{Item, Verdict};

/// Sends items round by round: the first of every key, then the second ones, and so on. `send` gets
/// the places of the items of one round and gives a verdict for each.
pub async fn in_rounds(
    items: &[Item<'_>],
    mut send: impl AsyncFnMut(&[usize]) -> Vec<Verdict>,
) -> Vec<Verdict> {
    let mut verdicts = vec![Verdict::Behind; items.len()];
    let mut held: HashSet<&str> = HashSet::new();
    for mut round in rounds(items) {
        round.retain(|&at| items[at].key.is_none_or(|key| !held.contains(key)));
        if round.is_empty() {
            break;
        }
        for (&at, verdict) in round.iter().zip(send(&round).await) {
            if verdict != Verdict::Done {
                held.extend(items[at].key);
            }
            verdicts[at] = verdict;
        }
    }
    verdicts
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

    #[tokio::test]
    async fn nothing_is_sent_after_one_of_its_key_that_was_not_done() {
        let items = items(&[Some("a"), Some("b"), Some("a"), None, Some("b"), Some("a")]);
        let mut sent: Vec<Vec<usize>> = Vec::new();
        let verdicts = in_rounds(&items, async |round| {
            sent.push(round.to_vec());
            let bad =
                |&at: &usize| if at == 1 { Verdict::Retry("no".into()) } else { Verdict::Done };
            round.iter().map(bad).collect()
        })
        .await;
        assert_eq!(sent, [vec![0, 1, 3], vec![2], vec![5]]);
        let (retry, done) = (Verdict::Retry("no".into()), Verdict::Done);
        let expected = [done.clone(), retry, done.clone(), done.clone(), Verdict::Behind, done];
        assert_eq!(verdicts, expected);
    }
}
