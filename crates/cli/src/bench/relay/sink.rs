//! Sinks that show what a relay can do: one counts, one never answers.

use async_trait::async_trait;
use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use tidegate::{
    Sink,
    outbox::{Pattern, Route},
    relay::{Plan, PlannedSink},
    sink::{Answer, Delivery, Hint, Outcome, SinkCapabilities, SinkError, Verdict},
};
use tokio::time::sleep;

/// Takes everything, after a while.
#[derive(Default)]
pub struct Counting {
    pub seen: AtomicU64,
    /// When something came for the first time.
    pub first: OnceLock<Instant>,
    pub takes: Duration,
    pub group: usize,
    pub by_topic: bool,
}

#[async_trait]
impl Sink for Counting {
    fn capabilities(&self) -> SinkCapabilities {
        SinkCapabilities {
            name: "counting",
            connections: vec!["main".to_owned()],
            operation: "publish".to_owned(),
            max_group: self.group,
            mixes_topics: !self.by_topic,
            budgets: Vec::new(),
        }
    }

    async fn check(&self) -> Result<Vec<Option<Duration>>, SinkError> {
        Ok(vec![None])
    }

    async fn deliver(&self, delivery: Delivery<'_>) -> Answer {
        self.first.get_or_init(Instant::now);
        if !self.takes.is_zero() {
            sleep(self.takes).await;
        }
        self.seen.fetch_add(delivery.items.len() as u64, Relaxed);
        let verdicts = vec![Verdict::Done; delivery.items.len()];
        Answer { outcome: Outcome::Answered(verdicts), hint: Hint::default() }
    }
}

/// Each topic pattern goes to its sink.
pub fn plan(sinks: &[(&str, &str, Arc<Counting>)]) -> Plan {
    let planned = |(name, _, sink): &(&str, &str, Arc<Counting>)| PlannedSink {
        name: (*name).to_owned(),
        sink: sink.clone(),
        pacer: tidegate::pacer::Options::default(),
    };
    let route = |(name, topics, _): &(&str, &str, Arc<Counting>)| Route {
        topics: Pattern((*topics).to_owned()),
        sink: (*name).to_owned(),
    };
    Plan {
        sinks: sinks.iter().map(planned).collect(),
        routes: sinks.iter().map(route).collect(),
        policies: Vec::new(),
    }
}
