//! Lanes for relays, evenly.

use super::{
    state::{self, State},
    tend::tend_noted,
};
use crate::{
    Postgres,
    decode::{get, millis},
    error::corrupt,
    pool::Pool,
};
use std::time::Duration;
use tidegate_core::{
    Fence, StoreError,
    outbox::{Epoch, Gained, GiveBack, Lane, LaneLease, Share, Shared},
};
use tokio_postgres::{Row, types::Type};

pub(super) const OPERATION: &str = "share lanes";

/// A share reads about what was set aside for this part of the lease: the next one renews in time.
const TAKE_OVER_PART: u32 = 6;
/// However short the lease, a share gets somewhere.
const SHORTEST_TAKE_OVER: Duration = Duration::from_millis(20);

pub(super) async fn share(store: &Postgres, request: &Share) -> Result<Shared, StoreError> {
    store.pool.lease(request.lease);
    loop {
        if let Some(shared) = try_share(store, request).await? {
            return Ok(shared);
        }
        begin_epoch(&store.pool, OPERATION).await?;
    }
}

/// Begins an epoch unless there is one.
pub(crate) async fn begin_epoch(pool: &Pool, operation: &'static str) -> Result<(), StoreError> {
    pool.call(pool.leased(operation), include_str!("../sql/outbox/begin_epoch.sql"), &[]).await?;
    Ok(())
}

/// `None` if an epoch has to begin first.
async fn try_share(store: &Postgres, request: &Share) -> Result<Option<Shared>, StoreError> {
    let pool = &store.pool;
    let (lanes, fences) = columns(&request.held);
    let sql = include_str!("../sql/outbox/share.sql");
    let params = [
        (&request.relay.0 as _, Type::TEXT),
        (&millis(request.lease) as _, Type::INT8),
        (&lanes as _, Type::INT2_ARRAY),
        (&fences as _, Type::INT8_ARRAY),
    ];
    let rows = pool.query(pool.leased(OPERATION), sql, &params).await?;
    let first = rows.first().ok_or_else(|| corrupt(OPERATION, "the answer came back empty"))?;
    let Some(epoch) = get::<Option<String>>(OPERATION, first, "epoch")?.map(Epoch) else {
        return Ok(None);
    };
    if epoch != request.epoch && !request.held.is_empty() {
        return lease_anew(store, request).await;
    }
    if get(OPERATION, first, "ids_restarted")? {
        super::note_restarted_ids(pool).await?;
        return Err(super::ids_restarted(OPERATION));
    }
    let number = |column| get::<i64>(OPERATION, first, column);
    let (relays, share) = (number("live")?, number("share")?);
    let unknown = leases(first)?;
    let (mut kept, mut disturbed): (Vec<Lane>, Vec<Lane>) = Default::default();
    for row in &rows {
        let Some(lane) = get::<Option<i16>>(OPERATION, row, "lane")? else { continue };
        kept.push(Lane(lane.unsigned_abs()));
        if get(OPERATION, row, "disturbed")? {
            disturbed.push(Lane(lane.unsigned_abs()));
        }
    }
    let lost = request.held.iter().map(|lease| lease.lane).filter(|lane| !kept.contains(lane));
    let (lost, surplus) = (lost.collect(), kept.len().saturating_sub(share as usize));
    if !disturbed.is_empty()
        && let Err(error) = tend_noted(pool, &disturbed).await
    {
        // The lanes are renewed all the same; they stay disturbed.
        tracing::warn!("{error}; trying again when lanes are shared");
    }
    let mut shared = Shared { epoch, lost, surplus, relays: relays as usize, ..Shared::default() };
    gain(store, request, unknown, number("wanted")?, &mut shared).await?;
    Ok(Some(shared))
}

/// What a relay was leased in another epoch it does not hold.
async fn lease_anew(store: &Postgres, request: &Share) -> Result<Option<Shared>, StoreError> {
    let lost: Vec<Lane> = request.held.iter().map(|lease| lease.lane).collect();
    let anew = Share { held: Vec::new(), ..request.clone() };
    let shared = Box::pin(try_share(store, &anew)).await?;
    Ok(shared.map(|shared| Shared { lost, ..shared }))
}

/// Leases lanes, and reads what must be known about them, for a part of the lease.
async fn gain(
    store: &Postgres,
    request: &Share,
    unknown: Vec<LaneLease>,
    wanted: i64,
    shared: &mut Shared,
) -> Result<(), StoreError> {
    let mut taking = store.memo.take_over(&request.relay, &shared.epoch);
    taking.keep(&shared.epoch, &unknown);
    let pending = taking.leases();
    let forgotten: Vec<_> = unknown.into_iter().filter(|lease| !pending.contains(lease)).collect();
    let more = wanted.saturating_sub(pending.len() as i64);
    if more > 0 || !forgotten.is_empty() {
        let gained = take(&store.pool, request, more.max(0), &forgotten).await?;
        (shared.gained, shared.settled) = taking.add(&store.pool, gained).await?;
    }
    let within = (request.lease / TAKE_OVER_PART).max(SHORTEST_TAKE_OVER);
    let known = taking.read(&store.pool, &request.routes, within).await;
    shared.pending = taking.pending();
    store.memo.keep_take_over(taking);
    shared.gained.append(&mut known?);
    Ok(())
}

/// Leases free lanes.
async fn take(
    pool: &Pool,
    request: &Share,
    most: i64,
    unknown: &[LaneLease],
) -> Result<Vec<Gained>, StoreError> {
    let (lanes, fences) = columns(unknown);
    let params = [
        (&request.relay.0 as _, Type::TEXT),
        (&most as _, Type::INT8),
        (&lanes as _, Type::INT2_ARRAY),
        (&fences as _, Type::INT8_ARRAY),
    ];
    let rows =
        pool.call(pool.leased(OPERATION), include_str!("../sql/outbox/take.sql"), &params).await?;
    rows.iter().map(new_lane).collect()
}

fn new_lane(row: &Row) -> Result<Gained, StoreError> {
    let lane = Lane(get::<i16>(OPERATION, row, "lane")?.unsigned_abs());
    let State { lags, before } = state::read(OPERATION, lane, get(OPERATION, row, "state")?)?;
    Ok(Gained {
        lease: LaneLease { lane, fence: Fence(get(OPERATION, row, "fence")?) },
        cursor: get(OPERATION, row, "cursor")?,
        lags,
        before,
        held: Vec::new(),
        aside: Vec::new(),
    })
}

pub(super) async fn give_back(pool: &Pool, request: &GiveBack) -> Result<(), StoreError> {
    let (lanes, fences) = columns(&request.lanes);
    let params = [
        (&request.relay.0 as _, Type::TEXT),
        (&request.ends as _, Type::BOOL),
        (&lanes as _, Type::INT2_ARRAY),
        (&fences as _, Type::INT8_ARRAY),
    ];
    pool.call(pool.leased("give back lanes"), include_str!("../sql/outbox/give_back.sql"), &params)
        .await?;
    Ok(())
}

/// Lanes of the relay of which it does not know.
fn leases(row: &Row) -> Result<Vec<LaneLease>, StoreError> {
    let lanes: Vec<i16> = get(OPERATION, row, "unknown_lanes")?;
    let fences: Vec<i64> = get(OPERATION, row, "unknown_fences")?;
    let lease = |(lane, fence): (i16, i64)| LaneLease {
        lane: Lane(lane.unsigned_abs()),
        fence: Fence(fence),
    };
    Ok(lanes.into_iter().zip(fences).map(lease).collect())
}

pub(super) fn numbers(lanes: impl Iterator<Item = Lane>) -> Vec<i16> {
    lanes.map(|lane| lane.0 as i16).collect()
}

pub(super) fn columns(leases: &[LaneLease]) -> (Vec<i16>, Vec<i64>) {
    leases.iter().map(|lease| (lease.lane.0 as i16, lease.fence.0)).unzip()
}
