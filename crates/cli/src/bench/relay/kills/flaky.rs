//! A sink at which one delivery in a hundred fails.

use async_trait::async_trait;
use std::{
    collections::HashSet,
    hash::{BuildHasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tidegate::{
    Headers, Sink,
    sink::{Answer, Delivery, Hint, Item, Outcome, SinkCapabilities, SinkError, Verdict},
};

/// One of so many fails.
const FAILS: u64 = 100;

/// Names the process that sent a message …
pub const RELAY: &str = "bench-relay";
/// … and says how many deliveries it had let fail before: it may never get to say more.
pub const FAILED: &str = "bench-failed";

/// Passes on what does not fail. What fails is not sent, and neither is what follows with its key.
pub struct Flaky {
    sink: Arc<dyn Sink>,
    relay: usize,
    noise: RandomState,
    /// Deliveries so far.
    tried: AtomicU64,
    /// Those that failed.
    failed: AtomicU64,
}

impl Flaky {
    pub fn new(sink: Arc<dyn Sink>, relay: usize) -> Self {
        let (noise, tried, failed) = Default::default();
        Self { sink, relay, noise, tried, failed }
    }

    fn fails(&self) -> bool {
        let tried = self.tried.fetch_add(1, Relaxed);
        let fails = self.noise.hash_one(tried).is_multiple_of(FAILS);
        self.failed.fetch_add(u64::from(fails), Relaxed);
        fails
    }

    /// What is done with each item.
    fn choose(&self, items: &[Item<'_>]) -> Vec<Choice> {
        let mut held: HashSet<&str> = HashSet::new();
        let mut choices = Vec::with_capacity(items.len());
        for item in items {
            let choice = match item.key {
                Some(key) if held.contains(key) => Choice::Behind,
                _ if self.fails() => Choice::Fails,
                _ => Choice::Goes,
            };
            if choice == Choice::Fails {
                held.extend(item.key);
            }
            choices.push(choice);
        }
        choices
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Goes,
    Fails,
    Behind,
}

#[async_trait]
impl Sink for Flaky {
    fn capabilities(&self) -> SinkCapabilities {
        self.sink.capabilities()
    }

    async fn check(&self) -> Result<Vec<Option<Duration>>, SinkError> {
        self.sink.check().await
    }

    async fn deliver(&self, delivery: Delivery<'_>) -> Answer {
        let choices = self.choose(delivery.items);
        let going = delivery.items.iter().zip(&choices).filter(|(_, it)| **it == Choice::Goes);
        let failed = self.failed.load(Relaxed).to_string();
        let headers = Headers::from_iter([(RELAY, self.relay.to_string()), (FAILED, failed)]);
        let items: Vec<Item<'_>> =
            going.map(|(item, _)| Item { headers: &headers, ..*item }).collect();
        let Answer { outcome, hint } = match items.is_empty() {
            true => Answer { outcome: Outcome::Answered(Vec::new()), hint: Hint::default() },
            false => self.sink.deliver(Delivery { items: &items, ..delivery }).await,
        };
        let outcome = match outcome {
            Outcome::Answered(verdicts) if verdicts.len() == items.len() => {
                Outcome::Answered(merge(delivery.items, &choices, verdicts))
            }
            // It is about the whole group, also about what was not sent.
            other => other,
        };
        Answer { outcome, hint }
    }
}

/// A verdict for each item, from those on what was sent.
fn merge(items: &[Item<'_>], choices: &[Choice], sent: Vec<Verdict>) -> Vec<Verdict> {
    let mut sent = sent.into_iter();
    let mut held: HashSet<&str> = HashSet::new();
    let mut verdicts = Vec::with_capacity(items.len());
    for (item, choice) in items.iter().zip(choices) {
        let behind = item.key.is_some_and(|key| held.contains(key));
        let verdict = match choice {
            Choice::Goes => sent.next().unwrap_or(Verdict::Behind),
            Choice::Fails if !behind => Verdict::Retry("the bench lets it fail".to_owned()),
            Choice::Fails | Choice::Behind => Verdict::Behind,
        };
        if verdict != Verdict::Done {
            held.extend(item.key);
        }
        verdicts.push(verdict);
    }
    verdicts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_failure_with_its_key_is_behind_it() {
        let item = |key| Item { key: Some(key), ..Item::record("1", "{}") };
        let items = [item("a"), item("b"), item("a"), item("b"), item("a")];
        let choices = [Choice::Goes, Choice::Goes, Choice::Fails, Choice::Goes, Choice::Behind];
        let (done, behind) = (Verdict::Done, Verdict::Behind);
        let verdicts = merge(&items, &choices, vec![done.clone(), done.clone(), done.clone()]);
        assert!(matches!(verdicts[2], Verdict::Retry(_)));
        let others = [&verdicts[0], &verdicts[1], &verdicts[3], &verdicts[4]];
        assert_eq!(others, [&done, &done, &done, &behind]);
        let refused = vec![Verdict::Retry("no".to_owned()), done.clone(), done];
        let verdicts = merge(&items, &choices, refused);
        assert_eq!(verdicts[2], behind, "the first of its key was not done");
    }
}
