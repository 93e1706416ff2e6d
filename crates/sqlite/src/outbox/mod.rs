//! The outbox: a file per step of a relay's loop.

mod claim;
mod inspect;
mod publish;
mod retain;
mod row;
mod settle;
mod share;
mod steer;
mod trouble;

pub use publish::publish;

use crate::Sqlite;
use async_trait::async_trait;
use tidegate_core::{
    Outbox, StoreError,
    outbox::{
        Claim, ClaimRequest, Epoch, GiveBack, Habits, Lane, LaneLease, OutboxCapabilities, Settled,
        Settlement, Share, Shared, TroubleNote,
    },
};

#[async_trait]
impl Outbox for Sqlite {
    fn outbox_capabilities(&self) -> OutboxCapabilities {
        OutboxCapabilities::log("sqlite", Habits::default())
    }

    async fn share_lanes(&self, request: Share) -> Result<Shared, StoreError> {
        self.write("share lanes", move |sql| share::share(sql, &request)).await
    }

    async fn claim_messages(&self, request: ClaimRequest) -> Result<Claim, StoreError> {
        check_epoch("claim messages", &request.epoch)?;
        self.read("claim messages", move |sql| claim::claim(sql, &request)).await
    }

    async fn settle_messages(&self, settlement: Settlement) -> Result<Settled, StoreError> {
        check_epoch("settle messages", &settlement.epoch)?;
        self.write("settle messages", move |sql| settle::settle(sql, &settlement)).await
    }

    async fn give_back_lanes(&self, request: GiveBack) -> Result<(), StoreError> {
        self.write("give back lanes", move |sql| share::give_back(sql, &request)).await
    }

    async fn note_sinks(&self, note: TroubleNote) -> Result<(), StoreError> {
        self.write("note sinks", move |sql| trouble::note(sql, &note)).await
    }

    async fn published(&self) {
        self.0.messages.notified().await;
    }
}

/// A file has one epoch: it does not go back in time while a process has it open, unless somebody restores a backup
/// into it, which the numbers of settlements tell.
fn check_epoch(operation: &'static str, epoch: &Epoch) -> Result<(), StoreError> {
    if *epoch == Epoch::default() { Ok(()) } else { Err(StoreError::went_back(operation)) }
}

/// Rows as the JSON array of arrays that statements take them as.
fn rows(rows: impl IntoIterator<Item = serde_json::Value>) -> String {
    serde_json::Value::Array(rows.into_iter().collect()).to_string()
}

/// Lanes as the array that statements take.
fn numbers<'a>(lanes: impl IntoIterator<Item = &'a Lane>) -> String {
    crate::sql::array(lanes.into_iter().map(|lane| lane.0))
}

/// Leases as the array that statements take.
fn leases(leases: &[LaneLease]) -> String {
    rows(leases.iter().map(|lease| serde_json::json!([lease.lane.0, lease.fence.0])))
}
