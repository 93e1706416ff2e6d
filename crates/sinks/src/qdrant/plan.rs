//! Which items go into which request: one request writes to one collection, and no item of a key
//! is sent before, or after the failure of, one that came earlier.

use super::request::{Batch, Form, Write, batch};
use std::collections::HashSet;
use tidegate_core::sink::{Item, Verdict};

/// The items of a delivery, and what became of them.
pub struct Plan<'a> {
    entries: Vec<Entry<'a>>,
    /// Keys of which an item was not done.
    held: HashSet<&'a str>,
}

struct Entry<'a> {
    key: Option<&'a str>,
    state: State,
}

enum State {
    Open(Write),
    Settled(Verdict),
}

/// The items of one request, by their place.
#[derive(Debug, PartialEq, Eq)]
pub struct Wave {
    pub collection: String,
    pub items: Vec<usize>,
}

impl<'a> Plan<'a> {
    /// Items that cannot be written are dead from the beginning.
    pub fn new(form: &Form, items: &[Item<'a>]) -> Self {
        let mut plan = Self { entries: Vec::with_capacity(items.len()), held: HashSet::new() };
        for item in items {
            let state = match form.write(item) {
                _ if item.order().is_some_and(|key| plan.held.contains(key)) => {
                    State::Settled(Verdict::Behind)
                }
                Ok(write) => State::Open(write),
                Err(reason) => {
                    plan.held.extend(item.order());
                    State::Settled(Verdict::Dead(reason))
                }
            };
            plan.entries.push(Entry { key: item.order(), state });
        }
        // From here on, it holds the keys of what fails when it is sent.
        plan.held.clear();
        plan
    }

    /// The next request, if anything is left to be sent.
    pub fn next(&mut self) -> Option<Wave> {
        let mut wave: Option<Wave> = None;
        // Keys of which an item must wait, because it goes elsewhere.
        let mut waiting = HashSet::new();
        for (at, entry) in self.entries.iter_mut().enumerate() {
            let State::Open(write) = &entry.state else { continue };
            if entry.key.is_some_and(|key| self.held.contains(key)) {
                entry.state = State::Settled(Verdict::Behind);
                continue;
            }
            let begin = || Wave { collection: write.collection.clone(), items: Vec::new() };
            let wave = wave.get_or_insert_with(begin);
            let waits = entry.key.is_some_and(|key| waiting.contains(key));
            if write.collection == wave.collection && !waits {
                wave.items.push(at);
            } else {
                waiting.extend(entry.key);
            }
        }
        wave
    }

    /// The body of a request.
    pub fn batch(&self, wave: &Wave) -> Batch {
        batch(wave.items.iter().filter_map(|&at| match &self.entries[at].state {
            State::Open(write) => Some(write),
            State::Settled(_) => None,
        }))
    }

    /// What became of the items of a request. Of several of a key that failed together, the first
    /// is at fault and the others are behind it.
    pub fn settle(&mut self, wave: Wave, verdicts: Vec<Verdict>) {
        for (at, verdict) in wave.items.into_iter().zip(verdicts) {
            let entry = &mut self.entries[at];
            let done = verdict == Verdict::Done;
            let behind = !done && entry.key.is_some_and(|key| !self.held.insert(key));
            entry.state = State::Settled(if behind { Verdict::Behind } else { verdict });
        }
    }

    /// One verdict per item. What was never sent is behind another.
    pub fn verdicts(self) -> Vec<Verdict> {
        let verdict = |entry: Entry<'_>| match entry.state {
            State::Settled(verdict) => verdict,
            State::Open(_) => Verdict::Behind,
        };
        self.entries.into_iter().map(verdict).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::Headers;

    const POINT: &str = r#"{"vector":[1]}"#;

    fn form() -> Form {
        Form::new(&toml::from_str("url = 'https://h'").unwrap()).unwrap()
    }

    fn items<'a>(places: &[(&'a str, Option<&'a str>)]) -> Vec<Item<'a>> {
        let item = |&(topic, key)| Item {
            topic,
            key,
            headers: Headers::none(),
            ..Item::record("1", POINT)
        };
        places.iter().map(item).collect()
    }

    fn wave(collection: &str, items: &[usize]) -> Option<Wave> {
        Some(Wave { collection: collection.to_owned(), items: items.to_vec() })
    }

    /// Sends the next request; all of it gets this verdict.
    fn send(plan: &mut Plan<'_>, verdict: Verdict) {
        let wave = plan.next().unwrap();
        let verdicts = vec![verdict; wave.items.len()];
        plan.settle(wave, verdicts);
    }

    #[test]
    fn a_key_stays_in_order_across_collections() {
        let items = items(&[
            ("a", Some("k")),
            ("b", Some("k")),
            ("a", Some("k")),
            ("b", Some("l")),
            ("a", None),
        ]);
        let mut plan = Plan::new(&form(), &items);
        assert_eq!(plan.next(), wave("a", &[0, 4]));
        send(&mut plan, Verdict::Done);
        assert_eq!(plan.next(), wave("b", &[1, 3]));
        send(&mut plan, Verdict::Done);
        assert_eq!(plan.next(), wave("a", &[2]));
        send(&mut plan, Verdict::Done);
        assert_eq!(plan.next(), None);
        assert_eq!(plan.verdicts(), vec![Verdict::Done; 5]);
    }

    #[test]
    fn nothing_is_sent_after_one_of_its_key_that_was_not_done() {
        let places = [("a", Some("k")), ("a", Some("k")), ("b", Some("k")), ("b", Some("l"))];
        let items = items(&places);
        let mut plan = Plan::new(&form(), &items);
        let retry = Verdict::Retry("no".to_owned());
        send(&mut plan, retry.clone());
        assert_eq!(plan.next(), wave("b", &[3]));
        send(&mut plan, Verdict::Done);
        assert_eq!(plan.next(), None);
        let expected = [retry, Verdict::Behind, Verdict::Behind, Verdict::Done];
        assert_eq!(plan.verdicts(), expected);
    }

    #[test]
    fn nothing_is_sent_after_one_of_its_key_that_cannot_be() {
        let mut items = items(&[("a", Some("k")), ("a", Some("k")), ("a", Some("k")), ("a", None)]);
        items[1].payload = b"{}";
        let mut plan = Plan::new(&form(), &items);
        assert_eq!(plan.next(), wave("a", &[0, 3]));
        send(&mut plan, Verdict::Done);
        let verdicts = plan.verdicts();
        assert!(matches!(verdicts[1], Verdict::Dead(_)), "{verdicts:?}");
        assert_eq!(verdicts[2], Verdict::Behind);
    }
}
