//! What arrived, and in which order.

use async_trait::async_trait;
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};
use tidegate::{
    Sink,
    outbox::{Pattern, Route},
    relay::{Plan, PlannedSink},
    sink::{Answer, Delivery, Hint, Outcome, SinkCapabilities, SinkError, Verdict},
};

/// Takes everything.
#[derive(Default)]
pub struct Recording(Mutex<Seen>);

#[derive(Default)]
pub struct Seen {
    /// How often each message came.
    pub times: HashMap<String, u32>,
    /// By key, the highest number that came.
    highest: HashMap<String, u64>,
    /// Messages that came for the first time after a later one of their key.
    pub out_of_order: u64,
    pub last: Option<Instant>,
}

impl Recording {
    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().expect("nothing panics while it holds the lock")
    }
}

impl Seen {
    /// A message arrived. Its number within its key is at the beginning of its payload.
    pub fn take(&mut self, id: &str, key: &str, payload: &[u8]) {
        let text = std::str::from_utf8(payload).unwrap_or_default();
        let number = text.trim_start_matches("{\"n\":").split(',').next();
        let number = number.and_then(|number| number.parse().ok()).unwrap_or_default();
        let times = self.times.entry(id.to_owned()).or_default();
        *times += 1;
        let highest = self.highest.entry(key.to_owned()).or_default();
        self.out_of_order += u64::from(*times == 1 && number < *highest);
        *highest = (*highest).max(number);
    }

    /// How many of those that were published never came, and how many came that were not.
    pub fn compared_with(&self, published: &HashSet<String>) -> (usize, usize) {
        let lost = published.iter().filter(|id| !self.times.contains_key(*id));
        let unexpected = self.times.keys().filter(|id| !published.contains(*id));
        (lost.count(), unexpected.count())
    }

    /// Messages that came more than once.
    pub fn duplicates(&self) -> u64 {
        self.times.values().map(|times| u64::from(*times - 1)).sum()
    }
}

#[async_trait]
impl Sink for Recording {
    fn capabilities(&self) -> SinkCapabilities {
        SinkCapabilities {
            name: "recording",
            connections: vec!["main".to_owned()],
            operation: "take".to_owned(),
            max_group: 100,
            mixes_topics: true,
            budgets: Vec::new(),
        }
    }

    async fn check(&self) -> Result<Vec<Option<Duration>>, SinkError> {
        Ok(vec![None])
    }

    async fn deliver(&self, delivery: Delivery<'_>) -> Answer {
        let mut seen = self.seen();
        for item in delivery.items {
            seen.take(item.id, item.key.unwrap_or_default(), item.payload);
        }
        seen.last = Some(Instant::now());
        let verdicts = vec![Verdict::Done; delivery.items.len()];
        Answer { outcome: Outcome::Answered(verdicts), hint: Hint::default() }
    }
}

/// Everything goes to one sink.
pub fn plan(sink: Arc<dyn Sink>) -> Plan {
    let name = "bench".to_owned();
    let route = Route { topics: Pattern("*".to_owned()), sink: name.clone() };
    let pacer = tidegate::pacer::Options::default();
    let sinks = vec![PlannedSink { name, sink, pacer }];
    Plan { sinks, routes: vec![route], policies: Vec::new() }
}
