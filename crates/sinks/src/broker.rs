//! What sinks to brokers have in common: one connection that is made when it is needed and kept
//! while it lasts, messages that are sent in rounds, and an end to all waiting.

use crate::{client::CONNECT, failure::Failure, rounds::Rounds};
use async_trait::async_trait;
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tidegate_core::sink::{
    Answer, Delivery, Hint, Item, Outcome, SinkCapabilities, SinkError, Verdict,
};
use tokio::time::{Instant, timeout_at};

/// What came back for one item: a verdict, or why there will be none.
pub type Reply = Result<Verdict, Failure>;

/// What differs from broker to broker.
#[async_trait]
pub trait Protocol: Send + Sync {
    /// Carries requests of many deliveries at the same time.
    type Connection: Send + Sync;

    /// Which server it is, for messages.
    fn place(&self) -> String;

    /// Makes a connection that is ready to publish.
    async fn connect(&self) -> Result<Self::Connection, Failure>;

    /// Whether a connection may still be used.
    fn is_alive(&self, connection: &Self::Connection) -> bool;

    /// Whether a connection is of use although something got no verdict on it.
    fn is_worth_keeping(&self, _: &Self::Connection) -> bool {
        false
    }

    /// Asks the broker for something that changes nothing.
    async fn check(&self, connection: &Self::Connection) -> Result<(), Failure>;

    /// Sends items that may overtake each other, all before the first answer is awaited. Gives a
    /// reply for each, by `deadline`.
    async fn publish(
        &self,
        connection: &Self::Connection,
        items: &[Item<'_>],
        deadline: Instant,
    ) -> Vec<Reply>;
}

/// A sink that speaks a broker's protocol.
pub struct Broker<P: Protocol> {
    protocol: P,
    kept: Mutex<Option<Arc<P::Connection>>>,
    /// Held by whoever makes a connection: the others wait for it.
    making: tokio::sync::Mutex<()>,
    capabilities: SinkCapabilities,
    timeout: Duration,
}

impl<P: Protocol> Broker<P> {
    /// Connects to nothing yet.
    pub fn new(name: &'static str, protocol: P, max_group: usize, timeout: Duration) -> Self {
        let capabilities = SinkCapabilities {
            name,
            connections: vec!["main".to_owned()],
            operation: "publish".to_owned(),
            max_group,
            mixes_topics: true,
            budgets: Vec::new(),
        };
        let (kept, making) = Default::default();
        Self { protocol, kept, making, capabilities, timeout }
    }

    /// What differs from broker to broker.
    #[cfg(any(feature = "nats", feature = "amqp", feature = "aws"))]
    pub fn protocol(&self) -> &P {
        &self.protocol
    }

    pub fn capabilities(&self) -> SinkCapabilities {
        self.capabilities.clone()
    }

    pub async fn check(&self) -> Result<Vec<Option<Duration>>, SinkError> {
        let deadline = Instant::now() + self.timeout;
        let connection = self.connection(deadline).await?;
        let checked = timeout_at(deadline, self.protocol.check(&connection)).await;
        if let Err(failure) = checked.unwrap_or(Err(Failure::TimedOut)) {
            self.forget(&connection);
            return Err(failure.into());
        }
        Ok(vec![None])
    }

    pub async fn deliver(&self, delivery: Delivery<'_>) -> Answer {
        if delivery.connection != 0 {
            return Failure::Broken(format!("there is no connection {}", delivery.connection))
                .into();
        }
        let deadline = Instant::now() + self.timeout;
        let connection = match self.connection(deadline).await {
            Ok(connection) => connection,
            Err(failure) => return failure.into(),
        };
        let (verdicts, failure) = self.send(&connection, delivery.items, deadline).await;
        if failure.is_some() {
            self.forget(&connection);
        }
        Answer { outcome: outcome(verdicts, failure), hint: Hint::default() }
    }

    /// The connection that is kept, or a new one.
    async fn connection(&self, deadline: Instant) -> Result<Arc<P::Connection>, Failure> {
        let making = async {
            let _making = self.making.lock().await;
            if let Some(kept) = self.alive() {
                return Ok(kept);
            }
            let made = Arc::new(self.protocol.connect().await?);
            *self.kept() = Some(Arc::clone(&made));
            Ok(made)
        };
        let within = Instant::now() + connect_within(self.timeout);
        timeout_at(within.min(deadline), making).await.unwrap_or_else(|_| {
            let place = self.protocol.place();
            Err(Failure::Unavailable(format!("{place} takes no connection in time")))
        })
    }

    fn alive(&self) -> Option<Arc<P::Connection>> {
        self.kept().as_ref().filter(|kept| self.protocol.is_alive(kept)).map(Arc::clone)
    }

    /// The next delivery makes a new connection, unless another has already.
    fn forget(&self, lost: &Arc<P::Connection>) {
        if !self.protocol.is_worth_keeping(lost) {
            self.kept().take_if(|kept| Arc::ptr_eq(kept, lost));
        }
    }

    fn kept(&self) -> MutexGuard<'_, Option<Arc<P::Connection>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends round by round, until something gets no verdict.
    async fn send(
        &self,
        connection: &P::Connection,
        items: &[Item<'_>],
        deadline: Instant,
    ) -> (Vec<Verdict>, Option<Failure>) {
        let mut failure = None;
        let mut rounds = Rounds::new(items);
        while let Some(places) = rounds.begin() {
            let round: Vec<Item<'_>> = places.iter().map(|&at| items[at]).collect();
            let replies = match &failure {
                None => self.protocol.publish(connection, &round, deadline).await,
                Some(failure) => vec![Err(Failure::clone(failure)); round.len()],
            };
            let verdict = |reply: Reply| reply.unwrap_or_else(|failed| note(&mut failure, failed));
            rounds.end(&places, replies.into_iter().map(verdict));
        }
        (rounds.verdicts(), failure)
    }
}

/// How long connecting may take: a part of the time, so that it does not seem that something may have
/// been delivered.
pub fn connect_within(timeout: Duration) -> Duration {
    CONNECT.min(timeout / 2)
}

/// Remembers the first failure; the item is not at fault.
fn note(first: &mut Option<Failure>, failure: Failure) -> Verdict {
    let verdict = Verdict::Unavailable(failure.reason().to_owned());
    first.get_or_insert(failure);
    verdict
}

/// The verdicts, unless the broker gave none.
fn outcome(verdicts: Vec<Verdict>, failure: Option<Failure>) -> Outcome {
    let none = |verdict: &Verdict| matches!(verdict, Verdict::Unavailable(_) | Verdict::Behind);
    match failure {
        Some(failure) if verdicts.iter().all(none) => failure.outcome(),
        _ => Outcome::Answered(verdicts),
    }
}

impl<P: Protocol> fmt::Debug for Broker<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.protocol.place();
        f.debug_struct(self.capabilities.name).field("at", &place).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
