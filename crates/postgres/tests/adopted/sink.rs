//! A sink that remembers what it got, and fails where a payload tells it to.

use async_trait::async_trait;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, UNIX_EPOCH},
};
use tidegate_core::{
    Headers, Sink,
    sink::{Answer, Delivery, Hint, Item, Outcome, SinkCapabilities, SinkError, Verdict},
};
use tokio::sync::Semaphore;

/// A message as it came.
#[derive(Clone, Debug)]
pub struct Got {
    pub id: String,
    pub topic: String,
    pub key: Option<String>,
    pub headers: Headers,
    pub payload: String,
    pub published_ms: u128,
}

/// `flaky` succeeds at the third try, `bad` never unless it was mended, `strange` never, with a strange reason.
pub struct Fake {
    got: Mutex<Vec<Got>>,
    tries: Mutex<BTreeMap<String, u32>>,
    mended: AtomicBool,
    /// How many requests are answered.
    answers: Semaphore,
}

impl Default for Fake {
    fn default() -> Self {
        let answers = Semaphore::new(Semaphore::MAX_PERMITS);
        Self { got: Mutex::default(), tries: Mutex::default(), mended: false.into(), answers }
    }
}

impl Fake {
    /// Answers nothing until it is told to.
    pub fn silent() -> Self {
        Self { answers: Semaphore::new(0), ..Self::default() }
    }

    pub fn speak(&self) {
        self.answers.add_permits(1_000_000);
    }

    pub fn mend(&self) {
        self.mended.store(true, Ordering::Relaxed);
    }

    pub fn got(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }

    /// The values of one header or, without one, the payloads, of a key in their order.
    pub fn of_key(&self, key: &str, header: Option<&str>) -> Vec<String> {
        let got = self.got();
        let of_key = got.into_iter().filter(|it| it.key.as_deref() == Some(key));
        let value = |it: Got| match header {
            Some(name) => it.headers.get(name).unwrap_or_default().to_owned(),
            None => it.payload,
        };
        of_key.map(value).collect()
    }

    fn verdict(&self, item: &Item<'_>) -> Verdict {
        let payload = String::from_utf8(item.payload.to_vec()).unwrap();
        let mut tries = self.tries.lock().unwrap();
        let tries = tries.entry(item.id.to_owned()).or_default();
        *tries += 1;
        if payload.contains("bad") && !self.mended.load(Ordering::Relaxed) {
            return Verdict::Dead("it is bad".to_owned());
        }
        if payload.contains("strange") {
            return Verdict::Dead("it says: 無理…".to_owned());
        }
        if payload.contains("flaky") && *tries < 3 {
            return Verdict::Retry("it is flaky".to_owned());
        }
        let published = item.published_at.unwrap().duration_since(UNIX_EPOCH).unwrap();
        self.got.lock().unwrap().push(Got {
            id: item.id.to_owned(),
            topic: item.topic.to_owned(),
            key: item.key.map(str::to_owned),
            headers: item.headers.clone(),
            payload,
            published_ms: published.as_millis(),
        });
        Verdict::Done
    }
}

#[async_trait]
impl Sink for Fake {
    fn capabilities(&self) -> SinkCapabilities {
        SinkCapabilities {
            name: "fake",
            connections: vec!["main".to_owned()],
            operation: "publish".to_owned(),
            max_group: 100,
            mixes_topics: true,
            budgets: Vec::new(),
        }
    }

    async fn check(&self) -> Result<Vec<Option<Duration>>, SinkError> {
        Ok(vec![None])
    }

    async fn deliver(&self, delivery: Delivery<'_>) -> Answer {
        self.answers.acquire().await.unwrap().forget();
        let mut held: BTreeSet<&str> = BTreeSet::new();
        let verdicts = delivery.items.iter().map(|item| {
            if item.key.is_some_and(|key| held.contains(key)) {
                return Verdict::Behind;
            }
            let verdict = self.verdict(item);
            if verdict != Verdict::Done {
                held.extend(item.key);
            }
            verdict
        });
        Answer { outcome: Outcome::Answered(verdicts.collect()), hint: Hint::default() }
    }
}
