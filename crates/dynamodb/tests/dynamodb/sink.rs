//! A sink that remembers what it got.

use async_trait::async_trait;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};
use tidegate_core::{
    Sink,
    sink::{Answer, Delivery, Hint, Outcome, SinkCapabilities, SinkError, Verdict},
};

/// What it does beside taking items.
#[derive(Clone, Debug, Default)]
pub struct Behaviour {
    /// Items with these payloads fail for good.
    pub refuses: BTreeSet<String>,
    /// Items with these payloads fail so many times.
    pub fails: BTreeMap<String, u32>,
    /// How long a delivery takes.
    pub takes: Duration,
}

/// One item that it got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Got {
    pub id: String,
    pub topic: String,
    pub key: Option<String>,
    pub payload: String,
}

pub struct Recorder {
    behaviour: Mutex<Behaviour>,
    got: Mutex<Vec<Got>>,
    has_begun: AtomicBool,
}

impl Recorder {
    pub fn new(behaviour: Behaviour) -> Arc<Self> {
        Arc::new(Self {
            behaviour: Mutex::new(behaviour),
            got: Mutex::default(),
            has_begun: AtomicBool::new(false),
        })
    }

    pub fn behave(&self, behaviour: Behaviour) {
        *self.behaviour.lock().unwrap() = behaviour;
    }

    /// Whether anything was brought to it.
    pub fn has_begun(&self) -> bool {
        self.has_begun.load(Relaxed)
    }

    /// All that it took, in its order.
    pub fn got(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }

    /// The payloads that it took, each once.
    pub fn payloads(&self) -> BTreeSet<String> {
        self.got().into_iter().map(|got| got.payload).collect()
    }

    /// By key, the payloads in the order in which each came first.
    pub fn first_by_key(&self) -> BTreeMap<String, Vec<usize>> {
        let mut keys: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for got in self.got() {
            let line = keys.entry(got.key.unwrap_or_default()).or_default();
            let number = got.payload.parse().unwrap();
            if !line.contains(&number) {
                line.push(number);
            }
        }
        keys
    }

    /// Keys whose items did not come in the order of their numbers, the first time each.
    pub fn out_of_order(&self) -> Vec<String> {
        let keys = self.first_by_key().into_iter();
        keys.filter(|(_, line)| !line.is_sorted()).map(|(key, _)| key).collect()
    }

    /// Keys of which the last that came is not the highest: a stale copy came after a later one.
    pub fn stale_at_the_end(&self) -> Vec<String> {
        let mut last: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for got in self.got() {
            let number: usize = got.payload.parse().unwrap();
            let entry = last.entry(got.key.unwrap_or_default()).or_default();
            *entry = (entry.0.max(number), number);
        }
        last.into_iter()
            .filter(|(_, (highest, last))| highest != last)
            .map(|(key, _)| key)
            .collect()
    }
}

#[async_trait]
impl Sink for Recorder {
    fn capabilities(&self) -> SinkCapabilities {
        SinkCapabilities {
            name: "recorder",
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
        self.has_begun.store(true, Relaxed);
        let takes = self.behaviour.lock().unwrap().takes;
        if !takes.is_zero() {
            tokio::time::sleep(takes).await;
        }
        let mut behaviour = self.behaviour.lock().unwrap();
        let mut failed: BTreeSet<String> = BTreeSet::new();
        let mut verdicts = Vec::new();
        for item in delivery.items {
            let payload = String::from_utf8(item.payload.to_vec()).unwrap();
            let key = item.key.map(str::to_owned);
            let is_behind = key.as_ref().is_some_and(|key| failed.contains(key));
            let is_refused = behaviour.refuses.contains(&payload);
            let fails = behaviour.fails.get_mut(&payload).filter(|left| **left > 0);
            let verdict = match fails {
                _ if is_behind => Verdict::Behind,
                Some(left) => {
                    *left -= 1;
                    Verdict::Retry("not now".to_owned())
                }
                None if is_refused => Verdict::Dead("never".to_owned()),
                None => {
                    let (id, topic) = (item.id.to_owned(), item.topic.to_owned());
                    self.got.lock().unwrap().push(Got { id, topic, key: key.clone(), payload });
                    Verdict::Done
                }
            };
            if verdict != Verdict::Done {
                failed.extend(key);
            }
            verdicts.push(verdict);
        }
        Answer { outcome: Outcome::Answered(verdicts), hint: Hint::default() }
    }
}
