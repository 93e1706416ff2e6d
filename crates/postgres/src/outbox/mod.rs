//! The outbox: a file per step of a relay's loop.

mod aside;
mod claim;
mod horizon;
pub(crate) mod inspect;
mod publish;
mod retain;
mod retiring;
mod settle;
pub(crate) mod share;
mod state;
pub(crate) mod tend;
pub(crate) mod trouble;

pub use publish::publish;

use crate::{Postgres, decode::get};
use async_trait::async_trait;
use claim::Reading;
use std::sync::{Mutex, MutexGuard};
use tidegate_core::{
    Class, Kind, Outbox, StoreError,
    outbox::{
        Advice, Claim, ClaimRequest, GiveBack, Settled, Settlement, Share, Shared, TroubleNote,
    },
};
use tokio::sync::OnceCell;

/// What a process remembers about an outbox. All of it can be found again.
#[derive(Default)]
pub(crate) struct Memo {
    name: OnceCell<String>,
    reading: Mutex<Reading>,
}

impl Memo {
    fn reading(&self) -> MutexGuard<'_, Reading> {
        self.reading.lock().expect("nothing panics while it holds the lock")
    }
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
    async fn share_lanes(&self, request: Share) -> Result<Shared, StoreError> {
        share::share(&self.pool, &request).await
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
