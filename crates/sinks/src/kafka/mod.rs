//! Apache Kafka, and what speaks its protocol.
//!
//! Done means that all replicas in sync have the message (`acks=all`). The producer is idempotent:
//! what it sends again by itself is not doubled, and messages of one partition stay in the order in
//! which they were handed over.
//!
//! That order is not enough. If a message fails for good, an idempotent producer goes on with the
//! next: the second message of a key arrives although the first did not. (A test shows it.) So of
//! each key one message is under way at a time, and what follows one that failed is not sent. Keys
//! do not wait for each other, which makes few rounds of most groups.

mod answer;
mod config;
mod producer;
mod request;

pub use config::{Config, Setting};

use crate::{ConfigError, Env, Envelope, failure::Failure, pattern::Pattern, rounds::Rounds};
use answer::{Fate, Scene, judge, outcome};
use async_trait::async_trait;
use producer::{Producers, Sender};
use rdkafka::{
    error::{KafkaError, RDKafkaErrorCode},
    producer::{DeliveryFuture, Producer},
};
use std::time::Duration;
use tidegate_core::sink::{
    Answer, Delivery, Hint, Item, Outcome, Sink, SinkCapabilities, SinkError, Verdict,
};
use tokio::{
    task::spawn_blocking,
    time::{Instant, timeout_at},
};

/// How long brokers may take to answer a check. It cannot be called off: a process that ends waits for it.
const CHECK: Duration = Duration::from_secs(5);

/// Delivers to topics of Kafka.
#[derive(Debug)]
pub struct Kafka {
    producers: Producers,
    topic: Pattern,
    envelope: Envelope,
    timeout: Duration,
    capabilities: SinkCapabilities,
}

/// A message on its way, or what became of it at once.
enum Sent {
    Away(DeliveryFuture),
    Failed(RDKafkaErrorCode),
    Unfit(String),
}

/// What a call has seen beside its verdicts.
struct Seen {
    started: Instant,
    /// Whether all that did not arrive was met with silence.
    silent: bool,
    broken: Option<String>,
}

impl Kafka {
    /// A sink as declared. `env` looks up the variables that hold secrets. It begins to look for
    /// brokers, and sends nothing.
    pub fn new(config: &Config, env: &Env<'_>) -> Result<Self, ConfigError> {
        let topic = config.topic()?;
        let capabilities = SinkCapabilities {
            name: "kafka",
            connections: vec!["main".to_owned()],
            operation: "produce".to_owned(),
            max_group: config.max_group()?,
            mixes_topics: true,
            budgets: Vec::new(),
        };
        let producers = Producers::start(config.client(env)?)?;
        let (envelope, timeout) = (config.envelope, config.timeout()?);
        Ok(Self { producers, topic, envelope, timeout, capabilities })
    }

    async fn send_all(&self, items: &[Item<'_>]) -> Outcome {
        let sender = self.producers.current();
        let mut seen = Seen { started: Instant::now(), silent: true, broken: None };
        let mut rounds = Rounds::new(items);
        while let Some(round) = rounds.begin() {
            let verdicts = self.send_round(&sender, items, &round, &mut seen).await;
            rounds.end(&round, verdicts);
        }
        let verdicts = rounds.verdicts();
        match (self.producers.replace_if_failed(&sender), seen.broken) {
            (Some(reason), _) if !verdicts.contains(&Verdict::Done) => Outcome::Unavailable(reason),
            (_, Some(problem)) => Outcome::Broken(problem),
            _ => outcome(verdicts, seen.silent),
        }
    }

    /// Hands over all messages of a round, then waits for what becomes of each. A message has half
    /// of the call's time, so a round that begins in the first half ends within the call: when a
    /// message is given up here, the producer has given it up, too, and does not send it later.
    async fn send_round(
        &self,
        sender: &Sender,
        items: &[Item<'_>],
        round: &[usize],
        seen: &mut Seen,
    ) -> Vec<Verdict> {
        if seen.started.elapsed() >= self.timeout / 2 {
            let late = Verdict::Unavailable("there was no time left for it".to_owned());
            return vec![late; round.len()];
        }
        let topics: Vec<_> =
            round.iter().map(|&at| request::topic(&self.topic, &items[at])).collect();
        let sent: Vec<Sent> = topics
            .iter()
            .zip(round)
            .map(|(topic, &at)| self.hand_over(sender, topic, &items[at]))
            .collect();
        let mut verdicts = Vec::with_capacity(round.len());
        for (sent, topic) in sent.into_iter().zip(&topics) {
            let fate = match self.result(sent, seen.started).await {
                Ok(()) => {
                    sender.watch.clear();
                    Fate::Is(Verdict::Done)
                }
                Err(Sent::Failed(code)) => {
                    let topic = topic.as_deref().unwrap_or_default();
                    let (only, trouble) = (self.topic.places().is_empty(), sender.watch.trouble());
                    judge(code, &Scene { topic, only, trouble })
                }
                Err(Sent::Unfit(reason)) => Fate::Is(Verdict::Dead(reason)),
                Err(Sent::Away(_)) => Fate::Silent,
            };
            verdicts.push(seen.verdict(fate));
        }
        verdicts
    }

    fn hand_over(&self, sender: &Sender, topic: &Result<String, String>, item: &Item<'_>) -> Sent {
        let topic = topic.as_ref().map_err(String::clone);
        match topic.and_then(|topic| request::record(self.envelope, topic, item)) {
            Ok(record) => match sender.producer.send_result(record) {
                Ok(report) => Sent::Away(report),
                Err((error, _)) => Sent::Failed(code(&error)),
            },
            Err(reason) => Sent::Unfit(reason),
        }
    }

    /// Waits for what becomes of a message; what is still away at the end of the call is given up.
    async fn result(&self, sent: Sent, started: Instant) -> Result<(), Sent> {
        let Sent::Away(mut report) = sent else { return Err(sent) };
        match timeout_at(started + self.timeout, &mut report).await {
            Ok(Ok(Ok(_))) => Ok(()),
            Ok(Ok(Err((error, _)))) => Err(Sent::Failed(code(&error))),
            Ok(Err(_)) => Err(Sent::Failed(RDKafkaErrorCode::PurgeInflight)),
            Err(_) => Err(Sent::Away(report)),
        }
    }
}

impl Seen {
    fn verdict(&mut self, fate: Fate) -> Verdict {
        let verdict = match fate {
            Fate::Is(verdict) => verdict,
            Fate::Silent => return Verdict::Unavailable("no answer in time".to_owned()),
            Fate::Broken(problem) => {
                self.broken = Some(problem.clone());
                Verdict::Retry(problem)
            }
        };
        self.silent &= verdict == Verdict::Done;
        verdict
    }
}

fn code(error: &KafkaError) -> RDKafkaErrorCode {
    error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Unknown)
}

#[async_trait]
impl Sink for Kafka {
    fn capabilities(&self) -> SinkCapabilities {
        self.capabilities.clone()
    }

    async fn check(&self) -> Result<Vec<Option<Duration>>, SinkError> {
        let (sender, patience) = (self.producers.current(), CHECK.min(self.timeout / 2));
        let asked = spawn_blocking(move || {
            let found = sender.producer.client().fetch_metadata(None, patience);
            found.map(drop).map_err(|error| (error, sender.watch.trouble()))
        });
        match asked.await {
            Ok(Ok(())) => Ok(vec![None]),
            Ok(Err((_, Some(trouble)))) => {
                Err(SinkError(format!("no broker answers: {}", trouble.text)))
            }
            Ok(Err((error, None))) => Err(SinkError(format!("no broker answers: {error}"))),
            Err(panic) => Err(SinkError(format!("the check ended: {panic}"))),
        }
    }

    async fn deliver(&self, delivery: Delivery<'_>) -> Answer {
        if delivery.connection != 0 {
            let problem = format!("there is no connection {}", delivery.connection);
            return Failure::Broken(problem).into();
        }
        Answer { outcome: self.send_all(delivery.items).await, hint: Hint::default() }
    }

    /// A topic whose partitions have no leader takes nothing, while others do.
    fn destination(&self, item: &Item<'_>) -> Option<String> {
        self.topic.destination(item)
    }
}
