//! Lanes for relays, evenly.

use super::{
    state::{self, State},
    tend::{tend_lanes, tend_noted},
};
use crate::{
    decode::{get, millis},
    error::corrupt,
    pool::Pool,
};
use std::collections::BTreeMap;
use tidegate_core::{
    Fence, StoreError,
    outbox::{
        Epoch, Gained, GiveBack, HeldKey, KeyHash, Lane, LaneLease, MessageId, Route, Share, Shared,
    },
};
use tokio_postgres::{Row, types::Type};

const OPERATION: &str = "share lanes";

pub(super) async fn share(pool: &Pool, request: &Share) -> Result<Shared, StoreError> {
    pool.lease(request.lease);
    loop {
        if let Some(shared) = try_share(pool, request).await? {
            return Ok(shared);
        }
        begin_epoch(pool, OPERATION).await?;
    }
}

/// Begins an epoch unless there is one.
pub(crate) async fn begin_epoch(pool: &Pool, operation: &'static str) -> Result<(), StoreError> {
    pool.call(pool.leased(operation), include_str!("../sql/outbox/begin_epoch.sql"), &[]).await?;
    Ok(())
}

/// `None` if an epoch has to begin first.
async fn try_share(pool: &Pool, request: &Share) -> Result<Option<Shared>, StoreError> {
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
        return lease_anew(pool, request).await;
    }
    if get(OPERATION, first, "ids_restarted")? {
        return Err(super::ids_restarted(OPERATION));
    }
    let number = |column| get::<i64>(OPERATION, first, column);
    let (relays, share) = (number("live")?, number("share")?);
    let unknown = Unknown {
        lanes: get(OPERATION, first, "unknown_lanes")?,
        fences: get(OPERATION, first, "unknown_fences")?,
    };
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
    let (gained, settled) = match number("wanted")? {
        0 if unknown.lanes.is_empty() => Default::default(),
        wanted => take(pool, request, wanted, unknown).await?,
    };
    let (gained, relays) = (gained.into_values().collect(), relays as usize);
    Ok(Some(Shared { epoch, settled, gained, lost, surplus, relays }))
}

/// What a relay was leased in another epoch it does not hold.
async fn lease_anew(pool: &Pool, request: &Share) -> Result<Option<Shared>, StoreError> {
    let lost: Vec<Lane> = request.held.iter().map(|lease| lease.lane).collect();
    let anew = Share { held: Vec::new(), ..request.clone() };
    let shared = Box::pin(try_share(pool, &anew)).await?;
    Ok(shared.map(|shared| Shared { lost, ..shared }))
}

/// New lanes, and the number of the relay's last settlement.
type Taken = (BTreeMap<Lane, Gained>, u64);

/// Lanes of a relay of which it does not know.
struct Unknown {
    lanes: Vec<i16>,
    fences: Vec<i64>,
}

/// Leases free lanes, and reads what must be known about them.
async fn take(
    pool: &Pool,
    request: &Share,
    most: i64,
    unknown: Unknown,
) -> Result<Taken, StoreError> {
    let params = [
        (&request.relay.0 as _, Type::TEXT),
        (&most as _, Type::INT8),
        (&unknown.lanes as _, Type::INT2_ARRAY),
        (&unknown.fences as _, Type::INT8_ARRAY),
    ];
    let rows =
        pool.call(pool.leased(OPERATION), include_str!("../sql/outbox/take.sql"), &params).await?;
    let taken = rows.iter().map(|row| {
        let lane = Lane(get::<i16>(OPERATION, row, "lane")?.unsigned_abs());
        Ok((lane, new_lane(lane, row)?))
    });
    let mut gained = taken.collect::<Result<BTreeMap<_, _>, StoreError>>()?;
    if gained.is_empty() {
        return Ok(Taken::default());
    }
    let settled = take_over(pool, request, &mut gained).await?;
    Ok((gained, settled))
}

fn new_lane(lane: Lane, row: &Row) -> Result<Gained, StoreError> {
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

/// Reads what must be known about new lanes, and the number of the relay's last settlement. What was set aside there
/// is brought in order before; mostly there is nothing.
async fn take_over(
    pool: &Pool,
    request: &Share,
    gained: &mut BTreeMap<Lane, Gained>,
) -> Result<u64, StoreError> {
    let lanes: Vec<Lane> = gained.keys().copied().collect();
    let mut rows = read_gained(pool, request, &lanes).await?;
    let is_alive = |row: &Row| get::<&str>(OPERATION, row, "kind").is_ok_and(|it| it == "alive");
    if rows.iter().any(is_alive) {
        reroute(pool, &lanes, &request.routes).await?;
        tend_lanes(pool, &lanes).await?;
        rows = read_gained(pool, request, &lanes).await?;
    }
    let mut settled = 0;
    for row in &rows {
        match get(OPERATION, row, "kind")? {
            "settled" => settled = get::<Option<i64>>(OPERATION, row, "number")?.unwrap_or(0),
            _ => learn(row, gained)?,
        }
    }
    Ok(settled.unsigned_abs())
}

async fn read_gained(pool: &Pool, request: &Share, lanes: &[Lane]) -> Result<Vec<Row>, StoreError> {
    let lanes = numbers(lanes);
    let params = [(&lanes as _, Type::INT2_ARRAY), (&request.relay.0 as _, Type::TEXT)];
    pool.query(pool.leased(OPERATION), include_str!("../sql/outbox/gained.sql"), &params).await
}

async fn reroute(pool: &Pool, lanes: &[Lane], routes: &[Route]) -> Result<(), StoreError> {
    let lanes = numbers(lanes);
    let regexes: Vec<String> = routes.iter().map(Route::regex).collect();
    let sinks: Vec<&str> = routes.iter().map(|route| route.sink.as_str()).collect();
    let params = [
        (&lanes as _, Type::INT2_ARRAY),
        (&regexes as _, Type::TEXT_ARRAY),
        (&sinks as _, Type::TEXT_ARRAY),
    ];
    pool.query(pool.leased(OPERATION), include_str!("../sql/outbox/reroute.sql"), &params).await?;
    Ok(())
}

fn learn(row: &Row, gained: &mut BTreeMap<Lane, Gained>) -> Result<(), StoreError> {
    let lane = Lane(get::<i16>(OPERATION, row, "lane")?.unsigned_abs());
    let number: i64 = get(OPERATION, row, "number")?;
    let Some(gained) = gained.get_mut(&lane) else { return Ok(()) };
    match get(OPERATION, row, "kind")? {
        "held" => {
            let sink = get(OPERATION, row, "sink")?;
            gained.held.push(HeldKey { lane, sink, key: KeyHash(number) });
        }
        "aside" => gained.aside.push(MessageId(number)),
        _ => {}
    }
    Ok(())
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

fn numbers(lanes: &[Lane]) -> Vec<i16> {
    lanes.iter().map(|lane| lane.0 as i16).collect()
}

fn columns(leases: &[LaneLease]) -> (Vec<i16>, Vec<i64>) {
    leases.iter().map(|lease| (lease.lane.0 as i16, lease.fence.0)).unzip()
}
