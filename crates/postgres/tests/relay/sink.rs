//! A sink that writes down what it sees, and refuses whole groups for the sake of bad items.

use crate::history::History;
use async_trait::async_trait;
use std::{
    collections::BTreeSet,
    sync::{
        Arc,
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
}

impl Recorder {
    pub fn new(history: &Arc<History>, bad: BTreeSet<u64>) -> Arc<Self> {
        Arc::new(Self { history: history.clone(), bad, largest_group: AtomicUsize::new(0) })
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
            false => {
                numbers.iter().for_each(|number| self.history.saw(*number));
                Outcome::Answered(vec![Verdict::Done; numbers.len()])
            }
        };
        Answer { outcome, hint: Hint::default() }
    }
}
