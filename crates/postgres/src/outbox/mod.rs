//! The outbox: a file per step of a relay's loop.

mod aside;
mod claim;
pub(crate) mod inspect;
mod publish;
mod retain;
mod retiring;
mod settle;
pub(crate) mod share;
mod state;
mod take_over;
pub(crate) mod tend;
pub(crate) mod trouble;

pub use publish::publish;

use crate::{Postgres, decode::get, pool::Pool};
use async_trait::async_trait;
use claim::Reading;
use std::sync::{Mutex, MutexGuard};
use take_over::TakeOver;
use tidegate_core::{
    Class, Kind, Outbox, StoreError, WorkerId,
    outbox::{
        Advice, Claim, ClaimRequest, Epoch, GiveBack, Habits, OutboxCapabilities, Settled,
        Settlement, Share, Shared, TroubleNote,
    },
};
use tokio::sync::OnceCell;

/// What a process remembers about an outbox. All of it can be found again.
#[derive(Default)]
pub(crate) struct Memo {
    name: OnceCell<String>,
    reading: Mutex<Reading>,
    /// Of each relay that has leased lanes of which not all is known yet.
    taking_over: Mutex<Vec<TakeOver>>,
}

impl Memo {
    fn reading(&self) -> MutexGuard<'_, Reading> {
        self.reading.lock().expect("nothing panics while it holds the lock")
    }

    fn taking_over(&self) -> MutexGuard<'_, Vec<TakeOver>> {
        self.taking_over.lock().expect("nothing panics while it holds the lock")
    }

    /// What a relay has read about lanes so far.
    fn take_over(&self, relay: &WorkerId, epoch: &Epoch) -> TakeOver {
        let mut taking = self.taking_over();
        match taking.iter().position(|it| it.is_of(relay)) {
            Some(at) => taking.swap_remove(at),
            None => TakeOver::new(relay, epoch),
        }
    }

    fn keep_take_over(&self, taking: TakeOver) {
        if taking.pending() > 0 {
            self.taking_over().push(taking);
        }
    }
}

/// Nobody leases a lane until this is mended: once the new ids have passed a cursor, no look at a lane would show it.
async fn note_restarted_ids(pool: &Pool) -> Result<(), StoreError> {
    let sql = include_str!("../sql/outbox/note_restarted_ids.sql");
    pool.call(pool.leased("note that ids start anew"), sql, &[]).await?;
    Ok(())
}

/// Ids that lanes have passed are drawn again.
pub(crate) fn ids_restarted(operation: &'static str) -> StoreError {
    let message = format!("{RESTARTED_IDS}; {RENUMBER}");
    StoreError::new(Kind::IdsRestarted, Class::Permanent, operation, message)
}

/// The same for people who look.
pub(crate) fn renumber() -> Advice {
    Advice { problem: RESTARTED_IDS.to_owned(), advice: RENUMBER.to_owned() }
}

/// How it happens that nothing is delivered, although nothing fails.
const RESTARTED_IDS: &str = "message ids start anew (its tables were copied without the sequence \
    tidegate.message_id): messages published since then would never be delivered";

/// The statement that mends it.
const RENUMBER: &str =
    "run `select tidegate.renumber();` in the database, then start the relay again";

impl Postgres {
    /// What makes ids of messages unique among outboxes.
    async fn outbox_name(&self) -> Result<&str, StoreError> {
        const OPERATION: &str = "read outbox";
        let read = async || {
            let sql = include_str!("../sql/outbox/name.sql");
            let rows = self.pool.query(self.pool.leased(OPERATION), sql, &[]).await?;
            let row =
                rows.first().ok_or_else(|| crate::error::corrupt(OPERATION, "it has no row"))?;
            get(OPERATION, row, "name")
        };
        self.memo.name.get_or_try_init(read).await.map(String::as_str)
    }
}

#[async_trait]
impl Outbox for Postgres {
    fn outbox_capabilities(&self) -> OutboxCapabilities {
        OutboxCapabilities::log("postgres", Habits::default())
    }

    async fn share_lanes(&self, request: Share) -> Result<Shared, StoreError> {
        share::share(self, &request).await
    }

    async fn claim_messages(&self, request: ClaimRequest) -> Result<Claim, StoreError> {
        self.claim(&request).await
    }

    async fn settle_messages(&self, settlement: Settlement) -> Result<Settled, StoreError> {
        settle::settle(&self.pool, &settlement).await
    }

    async fn give_back_lanes(&self, request: GiveBack) -> Result<(), StoreError> {
        share::give_back(&self.pool, &request).await
    }

    async fn note_sinks(&self, note: TroubleNote) -> Result<(), StoreError> {
        trouble::note(&self.pool, trouble::OWN, &note).await
    }

    async fn published(&self) {
        std::future::pending().await
    }
}
