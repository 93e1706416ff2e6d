//! One relay at a time: all lanes go to whoever has the table's lease.

use super::{Adopted, rows::lane};
use crate::{
    decode::{get, millis},
    error::corrupt,
    outbox::share::begin_epoch,
};
use tidegate_core::{
    Fence, MessageId, StoreError,
    outbox::{
        Epoch, Gained, GiveBack, HeldKey, KeyHash, LANES, Lane, LaneLease, Route, Share, Shared,
    },
};
use tokio_postgres::{Row, types::Type};

const OPERATION: &str = "share lanes";

impl Adopted {
    pub(super) async fn share(&self, request: &Share) -> Result<Shared, StoreError> {
        self.pool.lease(request.lease);
        let held = request.held.first().map_or(Fence::NOBODY, |lease| lease.fence);
        let lost = || request.held.iter().map(|lease| lease.lane).collect();
        let (epoch, lease) = loop {
            match self.lease(request, held).await? {
                (Some(epoch), lease) => break (epoch, lease),
                (None, _) => begin_epoch(&self.pool, OPERATION).await?,
            }
        };
        let Some(lease) = lease else {
            return Ok(Shared { epoch, lost: lost(), relays: 2, ..Shared::default() });
        };
        let settled = lease.settled;
        if lease.fence == held && epoch != request.epoch {
            // What was leased in another epoch is not held.
            let (relay, lanes) = (request.relay.clone(), request.held.clone());
            self.give_back(&GiveBack { relay, lanes, ends: false }).await?;
            let anew = Share { held: Vec::new(), ..request.clone() };
            let shared = Box::pin(self.share(&anew)).await?;
            return Ok(Shared { lost: lost(), ..shared });
        }
        if lease.fence == held {
            if lease.disturbed
                && let Err(error) = self.tend_noted().await
            {
                // The lease is renewed all the same; the table stays disturbed.
                tracing::warn!("{error}; trying again when the lease is renewed");
            }
            return Ok(Shared { epoch, settled, relays: 1, ..Shared::default() });
        }
        let gained = self.take_over(request, &lease).await?;
        Ok(Shared { epoch, settled, gained, lost: lost(), surplus: 0, relays: 1 })
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

    /// Brings what was set aside in order, and begins to read anew.
    async fn take_over(&self, request: &Share, lease: &Lease) -> Result<Vec<Gained>, StoreError> {
        let regexes: Vec<String> = request.routes.iter().map(Route::regex).collect();
        let sinks: Vec<&str> = request.routes.iter().map(|route| route.sink.as_str()).collect();
        let adopted = &self.plan.table.adopted;
        let params = [
            (adopted as _, Type::TEXT),
            (&regexes as _, Type::TEXT_ARRAY),
            (&sinks as _, Type::TEXT_ARRAY),
        ];
        let sql = include_str!("../sql/adopted/reroute.sql");
        self.pool.query(self.pool.leased(OPERATION), sql, &params).await?;
        self.tend().await?;
        let sql = include_str!("../sql/adopted/held.sql");
        let rows =
            self.pool.query(self.pool.leased(OPERATION), sql, &[(adopted, Type::TEXT)]).await?;
        let held: Vec<HeldKey> = rows.iter().map(held_key).collect::<Result<_, _>>()?;
        let cursor = {
            let mut rows = self.rows();
            rows.begin(lease.fence, lease.last_id);
            rows.last_id()
        };
        let gained = |lane: Lane| Gained {
            lease: LaneLease { lane, fence: lease.fence },
            cursor,
            lags: Vec::new(),
            before: None,
            held: held.iter().filter(|key| key.lane == lane).cloned().collect(),
            // What was set aside is not read as pending.
            aside: Vec::new(),
        };
        Ok((0..LANES).map(|lane| gained(Lane(lane))).collect())
    }

    pub(super) async fn give_back(&self, request: &GiveBack) -> Result<(), StoreError> {
        let Some(lease) = request.lanes.first() else { return Ok(()) };
        let params =
            [(&self.plan.table.adopted as _, Type::TEXT), (&lease.fence.0 as _, Type::INT8)];
        let sql = include_str!("../sql/adopted/give_back.sql");
        self.pool.query(self.pool.leased("give back lanes"), sql, &params).await?;
        Ok(())
    }
}

/// The right to the table.
struct Lease {
    fence: Fence,
    last_id: i64,
    disturbed: bool,
    /// The number of the last settlement under this fence.
    settled: u64,
}

fn held_key(row: &Row) -> Result<HeldKey, StoreError> {
    let key = KeyHash(get(OPERATION, row, "key_hash")?);
    let lane = lane(Some(key), MessageId::default());
    Ok(HeldKey { lane, sink: get(OPERATION, row, "sink")?, key })
}
