//! A sink that writes down what it sees, and refuses whole groups for the sake of bad items.

use crate::history::History;
use async_trait::async_trait;
use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tidegate_core::{
    Sink,
    sink::{Answer, Delivery, Hint, Item, Outcome, SinkCapabilities, SinkError, Verdict},
};

pub struct Recorder {
    pub history: Arc<History>,
    /// By their numbers. It does not say which of a group it was.
    pub bad: BTreeSet<u64>,
    pub largest_group: AtomicUsize,
    /// Those that have failed already, if some fail the first time.
    flaky: Option<Mutex<BTreeSet<u64>>>,
    /// Keys that end like this fail for now.
    pub fails_at_present: Mutex<Vec<&'static str>>,
}

/// One in so many fails the first time.
const FLAKY: u64 = 17;

impl Recorder {
    pub fn new(history: &Arc<History>, bad: BTreeSet<u64>) -> Arc<Self> {
        let (largest_group, fails_at_present) = Default::default();
        let (history, flaky) = (history.clone(), None);
        Arc::new(Self { history, bad, largest_group, flaky, fails_at_present })
    }

    /// Some messages fail the first time.
    pub fn flaky(history: &Arc<History>) -> Arc<Self> {
        let (bad, largest_group, fails_at_present) = Default::default();
        let (history, flaky) = (history.clone(), Some(Mutex::default()));
        Arc::new(Self { history, bad, largest_group, flaky, fails_at_present })
    }

    fn fails(&self, number: u64) -> bool {
        let is_new = |failed: &Mutex<BTreeSet<u64>>| failed.lock().unwrap().insert(number);
        number.is_multiple_of(FLAKY) && self.flaky.as_ref().is_some_and(is_new)
    }

    fn fails_at_present(&self, item: &Item<'_>) -> bool {
        let ends = self.fails_at_present.lock().unwrap();
        item.key.is_some_and(|key| ends.iter().any(|end| key.ends_with(end)))
    }

    /// One after the other, and none of a key after one that failed.
    fn take(&self, items: &[Item<'_>]) -> Vec<Verdict> {
        let mut held = BTreeSet::new();
        let take = |item: &Item<'_>| {
            if item.key.is_some_and(|key| held.contains(key)) {
                return Verdict::Behind;
            }
            if self.fails_at_present(item) || self.fails(number(item)) {
                held.extend(item.key.map(str::to_owned));
                return Verdict::Retry("not the first time".to_owned());
            }
            self.history.saw(number(item));
            Verdict::Done
        };
        items.iter().map(take).collect()
    }
}

/// The payload is the number; what is none was never published.
fn number(item: &Item<'_>) -> u64 {
    item.text().ok().and_then(|text| text.parse().ok()).unwrap_or(u64::MAX)
}

#[async_trait]
impl Sink for Recorder {
    fn capabilities(&self) -> SinkCapabilities {
        SinkCapabilities {
            name: "recorder",
            connections: vec!["main".to_owned()],
            operation: "publish".to_owned(),
            max_group: 1_000,
            mixes_topics: true,
            budgets: Vec::new(),
        }
    }

    async fn check(&self) -> Result<Vec<Option<Duration>>, SinkError> {
        Ok(vec![None])
    }

    async fn deliver(&self, delivery: Delivery<'_>) -> Answer {
        let numbers: Vec<u64> = delivery.items.iter().map(number).collect();
        self.largest_group.fetch_max(numbers.len(), Relaxed);
        let outcome = match numbers.iter().any(|number| self.bad.contains(number)) {
            true => Outcome::Refused("something in it is bad".to_owned()),
            false => Outcome::Answered(self.take(delivery.items)),
        };
        Answer { outcome, hint: Hint::default() }
    }
}
