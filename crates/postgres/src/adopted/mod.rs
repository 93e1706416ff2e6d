//! Outbox tables that people already have: adopted as they are, without a change of their schema.
//!
//! A [`Mapping`] says how rows are messages. What must be remembered besides (who relays the table, what
//! failed and why) is in side tables. Rows are read by their state, in the order that the table can
//! express, and marked as done all at once for each settlement. One relay at a time has the table.

mod advice;
mod claim;
mod encoding;
mod front;
mod inspect;
mod look;
mod mapping;
mod message;
mod order;
mod presets;
mod publish;
mod resolve;
mod settle;
mod shadow;
mod share;
mod sql;
mod table;
mod take_over;
mod tend;

pub use advice::Advice;
pub use mapping::{Done, Mapping, PayloadKind, Pending, Preset};
pub use order::Order;
pub use shadow::{PoisonRow, ShadowReport, TopicCount};

use crate::{Postgres, Protection, outbox::trouble, pool::Pool};
use async_trait::async_trait;
use front::Front;
use mapping::refused;
use resolve::Plan;
use sql::Statements;
use std::sync::{Arc, Mutex, MutexGuard};
use table::Table;
use take_over::TakeOver;
use tidegate_core::{
    StoreError,
    outbox::{
        GiveBack, Habits, Ids, Lines, Listing, OutboxCapabilities, Reads, Relays, Settled, Share,
        Shared, StateOutbox, TroubleNote, WhoseClock,
        by_state::{self, Marks, PendingRequest, ReadMessages},
    },
};
use tokio_postgres::types::{ToSql, Type};

/// A table of somebody else, as an outbox.
pub struct Adopted {
    pool: Arc<Pool>,
    preset: Option<Preset>,
    plan: Plan,
    statements: Statements,
    read: ReadMessages,
    /// From where on rows are read.
    front: Mutex<Front>,
    /// A table that was leased, while it is looked at what was set aside there.
    taking: Mutex<Option<TakeOver>>,
}

impl Adopted {
    /// Connects and adopts a table. Afterwards it is known to have all columns of the mapping; nothing
    /// was written. To relay it, the schema `tidegate` must be there, too.
    pub async fn open(url: &str, mapping: Mapping) -> Result<Self, StoreError> {
        Self::adopt(Arc::new(Pool::connect(url).await?), mapping).await
    }

    /// Adopts a table in the database of a store, over the same connections.
    pub async fn of(store: &Postgres, mapping: Mapping) -> Result<Self, StoreError> {
        Self::adopt(store.pool.clone(), mapping).await
    }

    async fn adopt(pool: Arc<Pool>, mapping: Mapping) -> Result<Self, StoreError> {
        let preset = mapping.preset;
        let names: Vec<&str> = match (&mapping.table, preset) {
            (Some(table), _) => vec![table],
            (None, Some(preset)) => preset.tables().to_vec(),
            (None, None) => return Err(refused("name the table in `table`, or a `preset`")),
        };
        let table = Table::find(&pool, &names).await?;
        let plan = Plan::new(mapping, table)?;
        let statements = Statements::new(&plan);
        let (read, front, taking) = Default::default();
        Ok(Self { pool, preset, plan, statements, read, front, taking })
    }

    /// The table, with its schema, as SQL writes it.
    pub fn table(&self) -> &str {
        &self.plan.table.adopted
    }

    /// The order that the table can express.
    pub fn order(&self) -> Order {
        match self.plan.order.is_empty() {
            true => Order::None,
            false => Order::ByColumns(self.plan.order.iter().map(|it| it.name.clone()).collect()),
        }
    }

    /// What people should know when a relay starts, a sentence each.
    pub fn remarks(&self) -> Vec<String> {
        let keyless = self.plan.key.is_empty().then(|| {
            "messages have no key, so that nothing waits for a message that failed".to_owned()
        });
        let preset = self.preset.and_then(|preset| preset.remark(self.plan.min_age));
        self.state_capabilities().remarks().into_iter().chain(keyless).chain(preset).collect()
    }

    /// How the latest connection is protected against others on the way.
    pub fn protection(&self) -> Option<Protection> {
        self.pool.protection()
    }

    /// How many statements were sent so far.
    pub fn statements(&self) -> u64 {
        self.pool.statements()
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    fn front(&self) -> MutexGuard<'_, Front> {
        self.front.lock().expect("nothing panics while it holds the lock")
    }

    fn taking(&self) -> MutexGuard<'_, Option<TakeOver>> {
        self.taking.lock().expect("nothing panics while it holds the lock")
    }

    /// The first two parameters of every statement that depends on the mapping.
    fn mapped(&self) -> [(&(dyn ToSql + Sync), Type); 2] {
        let (adopted, values) = (&self.plan.table.adopted, &self.statements.values);
        [(adopted, Type::TEXT), (values, Type::TEXT_ARRAY)]
    }
}

#[async_trait]
impl StateOutbox for Adopted {
    fn state_capabilities(&self) -> OutboxCapabilities {
        OutboxCapabilities {
            name: "postgres",
            reads: Reads::ByState,
            order: self.order().promise(),
            clock: WhoseClock::Store,
            relays: Relays::One,
            largest_transaction: None,
            publishing: None,
            lines: Lines::InStore,
            ids: Ids::SetAside,
            listing: Listing::ById,
            retention: false,
            batches: false,
            habits: Habits::default(),
        }
    }

    fn read_messages(&self) -> &ReadMessages {
        &self.read
    }

    async fn share_state(&self, request: Share) -> Result<Shared, StoreError> {
        self.share(&request).await
    }

    async fn read_pending(&self, request: PendingRequest) -> Result<by_state::Pending, StoreError> {
        self.claim(&request).await
    }

    async fn mark(&self, marks: Marks) -> Result<Settled, StoreError> {
        self.settle(&marks).await
    }

    async fn give_back_state(&self, request: GiveBack) -> Result<(), StoreError> {
        self.give_back(&request).await
    }

    async fn note_troubled(&self, mut note: TroubleNote) -> Result<(), StoreError> {
        let encoding = &self.plan.table.encoding;
        note.sinks.iter_mut().for_each(|it| it.reason = encoding.fit(&it.reason));
        trouble::note(&self.pool, self.table(), &note).await
    }
}
