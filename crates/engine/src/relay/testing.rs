//! A fake sink and what else tests of a relay need.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::*;
use crate::Stop;
use async_trait::async_trait;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};
use tidegate_core::{
    InspectOutbox, Memory, NewMessage, Publish, Sink, WorkerId,
    outbox::{Pattern, Route},
    sink::{Answer, Delivery, Hint, Item, Outcome, SinkCapabilities, SinkError, Verdict},
};
use tokio::time::{Instant, sleep};

/// What a fake sink does with an item: its payload tells.
#[derive(Default)]
pub(super) struct Fake {
    pub seen: Mutex<Vec<(String, String)>>,
    /// How often items were tried, by payload.
    pub tries: Mutex<BTreeMap<String, u32>>,
    pub calls: Mutex<Vec<usize>>,
    /// Each request takes so long.
    pub takes: Duration,
    /// It is not there before this.
    pub absent_until: Option<Instant>,
    /// It takes nothing any more after so many requests.
    pub gone_after: Option<usize>,
    pub by_topic: bool,
    /// What goes to this topic gets no answer within this time.
    pub hangs: Option<(String, std::ops::Range<Instant>)>,
    /// It answers each item by itself, and must not get two of a key at once.
    pub one_per_key: bool,
    pub one_by_one: bool,
    /// One bad item and all are refused.
    pub refuses: bool,
    /// It is too busy for a whole request if it is for one of its items.
    pub busy_as_a_whole: bool,
    /// In so many answers, it leaves out an item.
    pub forgets: Mutex<u32>,
}

impl Fake {
    /// `bad…` never succeeds, `flaky…` at the third try, and it is always too busy for `busy…`.
    fn verdict(&self, item: &Item<'_>) -> Verdict {
        let payload = item.text().unwrap().trim_matches('"').to_owned();
        let tries = {
            let mut tries = self.tries.lock().unwrap();
            let tries = tries.entry(payload.clone()).or_default();
            *tries += 1;
            *tries
        };
        match &*payload {
            it if it.starts_with("panic") => panic!("as asked"),
            it if it.starts_with("bad") => Verdict::Dead("bad".to_owned()),
            it if it.starts_with("busy") => Verdict::Throttled { retry_after: None },
            it if it.starts_with("flaky") && tries < 3 => Verdict::Retry("flaky".to_owned()),
            _ => {
                let key = item.key.unwrap_or_default().to_owned();
                self.seen.lock().unwrap().push((key, payload));
                Verdict::Done
            }
        }
    }

    pub fn of_key(&self, key: &str) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|(of, _)| of == key).map(|(_, payload)| payload.clone()).collect()
    }

    pub fn tries(&self) -> BTreeMap<String, u32> {
        self.tries.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

#[async_trait]
impl Sink for Fake {
    fn capabilities(&self) -> SinkCapabilities {
        SinkCapabilities {
            name: "fake",
            connections: vec!["main".to_owned()],
            operation: "publish".to_owned(),
            max_group: if self.one_by_one { 1 } else { 100 },
            mixes_topics: !self.by_topic,
            budgets: Vec::new(),
        }
    }

    fn one_per_key(&self) -> bool {
        self.one_per_key
    }

    async fn check(&self) -> Result<Vec<Option<Duration>>, SinkError> {
        if let Some((_, within)) = &self.hangs
            && within.contains(&Instant::now())
        {
            sleep(Duration::from_secs(60)).await;
        }
        match self.absent_until.is_some_and(|until| Instant::now() < until) {
            true => Err(SinkError("gone".to_owned())),
            false => Ok(vec![None]),
        }
    }

    async fn deliver(&self, delivery: Delivery<'_>) -> Answer {
        let calls = {
            let mut calls = self.calls.lock().unwrap();
            calls.push(delivery.items.len());
            calls.len()
        };
        sleep(self.takes).await;
        if let Some((topic, within)) = &self.hangs
            && within.contains(&Instant::now())
            && delivery.items.iter().any(|item| item.topic == topic)
        {
            sleep(Duration::from_secs(60)).await;
            return Answer { outcome: Outcome::TimedOut, hint: Hint::default() };
        }
        let keys: Vec<&str> = delivery.items.iter().filter_map(|item| item.order()).collect();
        let distinct: BTreeSet<&str> = keys.iter().copied().collect();
        assert!(!self.one_per_key || distinct.len() == keys.len(), "one message of each key");
        let absent = self.absent_until.is_some_and(|until| Instant::now() < until);
        let topics: BTreeSet<&str> = delivery.items.iter().map(|item| item.topic).collect();
        assert!(!self.by_topic || topics.len() == 1, "one topic per request");
        let is_busy = |item: &Item<'_>| item.text().unwrap().contains("busy");
        let is_bad = |item: &Item<'_>| item.text().unwrap().contains("bad");
        let outcome = if self.gone_after.is_some_and(|after| calls > after) {
            Outcome::Gone("closed".to_owned())
        } else if absent {
            Outcome::Unavailable("gone".to_owned())
        } else if self.busy_as_a_whole && delivery.items.iter().any(is_busy) {
            Outcome::Throttled { retry_after: None, reason: "429".to_owned() }
        } else if self.refuses && delivery.items.iter().any(is_bad) {
            Outcome::Refused("one is bad".to_owned())
        } else {
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
            let mut verdicts: Vec<Verdict> = verdicts.collect();
            let mut forgets = self.forgets.lock().unwrap();
            if *forgets > 0 {
                *forgets -= 1;
                verdicts.pop();
            }
            Outcome::Answered(verdicts)
        };
        Answer { outcome, hint: Hint::default() }
    }
}

pub(super) fn store() -> Memory {
    let start = Instant::now();
    Memory::new(move || Duration::from_secs(1_000) + start.elapsed())
}

pub(super) fn message(topic: &str, key: Option<&str>, payload: &str) -> NewMessage {
    NewMessage {
        topic: topic.to_owned(),
        key: key.map(str::to_owned),
        payload: format!("\"{payload}\"").into_bytes(),
        ..NewMessage::default()
    }
}

pub(super) async fn publish(store: &Memory, messages: &[(&str, &str, &str)]) {
    let messages = messages.iter().map(|(topic, key, payload)| {
        message(topic, Some(*key).filter(|key| !key.is_empty()), payload)
    });
    store.publish(messages.collect()).await.unwrap();
}

pub(super) fn plan(
    sinks: &[(&str, &Arc<Fake>)],
    routes: &[(&str, &str)],
    policy: TopicPolicy,
) -> Plan {
    let sink = |(name, sink): &(&str, &Arc<Fake>)| PlannedSink {
        name: (*name).to_owned(),
        sink: (*sink).clone(),
        pacer: tidegate_pacer::Options::default(),
    };
    Plan {
        sinks: sinks.iter().map(sink).collect(),
        routes: routes.iter().map(|(topics, sink)| route(topics, sink)).collect(),
        policies: vec![(Pattern("*".to_owned()), policy)],
    }
}

pub(super) fn route(topics: &str, sink: &str) -> Route {
    Route { topics: Pattern(topics.to_owned()), sink: sink.to_owned() }
}

/// `slow.*` goes to one sink, everything else to the other.
pub(super) fn two_sinks() -> Plan {
    let (slow, fast) = (Arc::new(Fake::default()), Arc::new(Fake::default()));
    let routes = [("slow.*", "slow"), ("*", "fast")];
    plan(&[("slow", &slow), ("fast", &fast)], &routes, TopicPolicy::default())
}

pub(super) fn options(name: &str, drain: bool) -> RelayOptions {
    RelayOptions { drain, ..RelayOptions::new(WorkerId(name.to_owned())) }
}

pub(super) async fn drain(store: &Memory, plan: Plan) -> Counts {
    let relay = Relay::new(Arc::new(store.clone()), plan, options("r", true)).unwrap();
    relay.run(Stop::new()).await.unwrap().counts
}

pub(super) async fn outstanding(store: &Memory) -> u64 {
    store.outbox().await.unwrap().topics.iter().map(|topic| topic.outstanding).sum()
}
