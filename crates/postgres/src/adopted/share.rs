//! One relay at a time: all lanes go to whoever has the table's lease.

use super::Adopted;
use crate::{
    decode::{get, millis},
    error::corrupt,
    outbox::share::begin_epoch,
};
use tidegate_core::{
    Fence, StoreError,
    outbox::{Epoch, GiveBack, Share, Shared},
};
use tokio_postgres::types::Type;

pub(super) const OPERATION: &str = "share lanes";

impl Adopted {
    pub(super) async fn share(&self, request: &Share) -> Result<Shared, StoreError> {
        self.pool.lease(request.lease);
        let known = request.held.first().map(|lease| lease.fence);
        let held = known.or_else(|| self.taken()).unwrap_or(Fence::NOBODY);
        let lost = || request.held.iter().map(|lease| lease.lane).collect();
        let (epoch, lease) = loop {
            match self.lease(request, held).await? {
                (Some(epoch), lease) => break (epoch, lease),
                (None, _) => begin_epoch(&self.pool, OPERATION).await?,
            }
        };
        let Some(lease) = lease else {
            *self.taking() = None;
            return Ok(Shared { epoch, lost: lost(), relays: 2, ..Shared::default() });
        };
        let settled = lease.settled;
        if known == Some(lease.fence) && epoch != request.epoch {
            // What was leased in another epoch is not held.
            let (relay, lanes) = (request.relay.clone(), request.held.clone());
            self.give_back(&GiveBack { relay, lanes, ends: false }).await?;
            let anew = Share { held: Vec::new(), ..request.clone() };
            let shared = Box::pin(self.share(&anew)).await?;
            return Ok(Shared { lost: lost(), ..shared });
        }
        if known == Some(lease.fence) {
            if lease.disturbed
                && let Err(error) = self.tend_noted().await
            {
                // The lease is renewed all the same; the table stays disturbed.
                tracing::warn!("{error}; trying again when the lease is renewed");
            }
            return Ok(Shared { epoch, settled, relays: 1, ..Shared::default() });
        }
        let known = self.take_over(request, &lease).await?;
        let pending = usize::from(known.is_none());
        let gained = known.unwrap_or_default();
        Ok(Shared { epoch, settled, gained, pending, lost: lost(), relays: 1, ..Shared::default() })
    }

    /// The fence of a table that is being taken over, of which the relay does not know yet.
    fn taken(&self) -> Option<Fence> {
        self.taking().as_ref().map(|taking| taking.fence)
    }

    /// Renews the lease or takes it; none if another relay has it. Without an epoch nothing of this counts.
    async fn lease(
        &self,
        request: &Share,
        held: Fence,
    ) -> Result<(Option<Epoch>, Option<Lease>), StoreError> {
        let params = [
            (&self.plan.table.adopted as _, Type::TEXT),
            (&request.relay.0 as _, Type::TEXT),
            (&millis(request.lease) as _, Type::INT8),
            (&held.0 as _, Type::INT8),
        ];
        let sql = include_str!("../sql/adopted/share.sql");
        let rows = self.pool.query(self.pool.leased(OPERATION), sql, &params).await?;
        let row = rows.first().ok_or_else(|| corrupt(OPERATION, "the answer came back empty"))?;
        let epoch = get::<Option<String>>(OPERATION, row, "epoch")?.map(Epoch);
        let lease = |fence| {
            Ok(Lease {
                fence: Fence(fence),
                last_id: get(OPERATION, row, "last_id")?,
                disturbed: get(OPERATION, row, "disturbed")?,
                settled: get::<i64>(OPERATION, row, "settled")?.unsigned_abs(),
            })
        };
        Ok((epoch, get::<Option<i64>>(OPERATION, row, "fence")?.map(lease).transpose()?))
    }

    pub(super) async fn give_back(&self, request: &GiveBack) -> Result<(), StoreError> {
        let known = request.lanes.first().map(|lease| lease.fence);
        let taken = || self.taken().filter(|_| request.ends);
        let Some(fence) = known.or_else(taken) else { return Ok(()) };
        *self.taking() = None;
        let params = [(&self.plan.table.adopted as _, Type::TEXT), (&fence.0 as _, Type::INT8)];
        let sql = include_str!("../sql/adopted/give_back.sql");
        self.pool.query(self.pool.leased("give back lanes"), sql, &params).await?;
        Ok(())
    }
}

/// The right to the table.
pub(super) struct Lease {
    pub fence: Fence,
    pub last_id: i64,
    disturbed: bool,
    /// The number of the last settlement under this fence.
    settled: u64,
}
