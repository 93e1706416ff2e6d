//! Looking at an outbox, and steering what was set aside. For people.

use super::{Decision, Message, MessageId, OnDead, SinkTrouble, SteerPage, Steered, Steering};
use crate::{
    StoreError, WorkerId,
    error::{Class, Kind},
};
use async_trait::async_trait;
use serde::Serialize;
use std::time::Duration;

/// Reads an outbox for people, and carries out what they decide.
#[async_trait]
pub trait InspectOutbox: Send + Sync {
    /// How it stands.
    /// After a change of routes, what was done under the old ones may count as outstanding until sinks that
    /// lagged have caught up.
    async fn outbox(&self) -> Result<OutboxStatus, StoreError>;

    /// How many messages are outstanding, cheaply: what a limit on them is compared with. It may be
    /// too high, while a sink lags or one lane is behind the others; never too low.
    async fn outstanding(&self) -> Result<Outstanding, StoreError>;

    /// The dead, grouped by topic, sink and reason, most first.
    async fn dead_groups(&self) -> Result<Vec<DeadGroup>, StoreError>;

    /// Messages that were set aside, in the order of their ids, or in the store's own: see
    /// [`Listing`](super::Listing).
    async fn stuck(&self, query: StuckQuery) -> Result<Vec<Stuck>, StoreError>;

    /// One message, whatever became of it; `None` if it is not stored any more.
    async fn message(&self, id: MessageId) -> Result<Option<Stored>, StoreError>;

    /// Carries out one page of a decision about the dead, in the order in which they are listed, in one transaction.
    ///
    /// Afterwards every dead message that was looked at and chosen is changed, durably, and counted in the
    /// command's audit line; a command that changes nothing leaves none. A message that is due again waits
    /// behind earlier ones of its key. If it fails, nothing was changed, or all of the page.
    async fn steer_dead(&self, page: SteerPage) -> Result<Steered, StoreError>;

    /// Makes dead messages due again, with all attempts, page by page. Returns how many.
    async fn retry_dead(&self, which: Selection, by: &AuditLine) -> Result<u64, StoreError> {
        Steering::new(Decision::Retry, which, by.clone()).finish(self).await
    }

    /// Removes dead messages for good, page by page; what waits behind one goes on. Returns how many.
    async fn drop_dead(&self, which: Selection, by: &AuditLine) -> Result<u64, StoreError> {
        Steering::new(Decision::Drop, which, by.clone()).finish(self).await
    }

    /// The last audit lines, newest first.
    async fn audit(&self, limit: usize) -> Result<Vec<AuditLine>, StoreError>;
}

/// A message that is still there.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// What was published.
    pub message: Message,
    /// Whether it is neither outstanding nor set aside.
    pub sent: bool,
}

/// How an outbox stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OutboxStatus {
    /// By topic.
    pub topics: Vec<TopicStatus>,
    /// Relays that live.
    pub relays: Vec<RelayStatus>,
    /// Sinks that take nothing at the moment, as living relays say.
    pub sinks: Vec<SinkTrouble>,
    /// What keeps committed messages from being read.
    pub holder: Option<Holder>,
    /// What keeps the store from removing rows that nobody needs any more.
    pub oldest_snapshot: Option<Holder>,
    /// Messages are refused while so many or more are outstanding.
    pub limit: Option<u64>,
    /// Why nothing is delivered although nothing fails, and what to do.
    pub advice: Option<Advice>,
}

/// Something that is wrong with an outbox, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub advice: String,
}

/// How the messages on one topic stand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TopicStatus {
    /// Which topic.
    pub topic: String,
    /// Published, and neither sent nor dead: those set aside included.
    pub outstanding: u64,
    /// Among the outstanding, those that are tried again.
    pub retrying: u64,
    /// Among the outstanding, those that wait behind another, or for their time.
    pub waiting: u64,
    /// Among the outstanding, those that no route takes.
    pub unrouted: u64,
    /// Given up, or parked behind one that was.
    pub dead: u64,
    /// How long ago the oldest of the outstanding was published.
    pub oldest: Option<Duration>,
}

/// A relay that lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RelayStatus {
    /// Its name.
    pub relay: WorkerId,
    /// How many lanes it has.
    pub lanes: u64,
}

/// A transaction that keeps younger messages from being read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// What the database calls it.
    pub name: String,
    /// For how long it has been open.
    pub age: Duration,
}

/// How many messages are outstanding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outstanding {
    /// So many, or less.
    pub messages: u64,
    /// Messages are refused while there are so many or more.
    pub limit: Option<u64>,
}

impl Outstanding {
    /// Refuses to take more while there are too many.
    pub fn admit(&self) -> Result<(), StoreError> {
        match self.limit {
            Some(limit) if self.messages >= limit => Err(StoreError::new(
                Kind::Full,
                Class::Transient,
                "publish",
                format!(
                    "{} messages are outstanding, and {limit} is the limit: publish later",
                    self.messages
                ),
            )),
            _ => Ok(()),
        }
    }
}

/// Dead messages that are dead for the same reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeadGroup {
    /// Their topic.
    pub topic: String,
    /// The sink that refused them.
    pub sink: String,
    /// Why.
    pub reason: String,
    /// How many.
    pub messages: u64,
    /// The first of them.
    pub first: MessageId,
    /// The last of them.
    pub last: MessageId,
}

/// Which messages among those set aside.
#[derive(Clone, Debug, Default)]
pub struct StuckQuery {
    /// Only in this state.
    pub state: Option<StuckState>,
    /// Only these.
    pub which: Selection,
    /// Only behind this one.
    pub after: Option<MessageId>,
    /// At most this many.
    pub limit: usize,
}

/// A choice among messages that were set aside. All that is named must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only these.
    pub ids: Option<Vec<MessageId>>,
    /// Only on this topic.
    pub topic: Option<String>,
    /// Only for this sink.
    pub sink: Option<String>,
    /// Only those whose reason contains this.
    pub reason: Option<String>,
}

/// A message that was set aside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stuck {
    /// Which message.
    pub id: MessageId,
    /// Its topic.
    pub topic: String,
    /// Its key.
    pub key: Option<String>,
    /// The sink that it is for.
    pub sink: String,
    /// What it waits for.
    pub state: StuckState,
    /// How many attempts have failed.
    pub attempts: u32,
    /// Why the last one did.
    pub reason: String,
    /// For a dead one: what it means for its key.
    pub then: OnDead,
    /// When it is tried again, from now.
    pub due_in: Option<Duration>,
}

/// What a message that was set aside waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StuckState {
    /// Its next attempt.
    Retry,
    /// Others of its key.
    Behind,
    /// Its time.
    Later,
    /// A route.
    Unrouted,
    /// Somebody.
    Dead,
}

impl StuckState {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Retry, Self::Behind, Self::Later, Self::Unrouted, Self::Dead];

    /// As it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Behind => "behind",
            Self::Later => "later",
            Self::Unrouted => "unrouted",
            Self::Dead => "dead",
        }
    }

    /// Reads what is stored.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

/// Who changed what, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AuditLine {
    /// When, in milliseconds since 1970 by the store's clock; zero until it is written.
    pub at_ms: i64,
    /// Who.
    pub who: String,
    /// What: `retry` or `drop`; empty until it is written.
    pub what: String,
    /// How many messages.
    pub messages: u64,
    /// Why.
    pub why: String,
}
