//! Leases: expired ones first, then due retries, then fresh ranges.

use crate::{
    errors::{Failure, corrupt},
    row,
    sql::{Millis, Sql, array},
};
use rusqlite::params;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_core::{
    Batch, BatchId, Fence, Items, Lease, Range, RetryItem, Snapshot, SnapshotHash,
    claim::{Candidate, Claim, ClaimRequest, share},
    limits::MAX_LEASES_PER_CLAIM,
};

pub(crate) fn claim(sql: &Sql, request: &ClaimRequest) -> Result<Claim, Failure> {
    let now = sql.now()?;
    let wanted = wanted(sql, request, now)?;
    let plan = plan(sql, request, &wanted, now)?;
    let leases = plan.carry_out(sql, &request.worker.0, now.plus(request.lease))?;
    answer(sql, request, wanted, leases, now)
}

/// A running batch that the request is for.
struct Wanted {
    batch: Batch,
    cursor: u64,
    /// Ranges leased now.
    active: u64,
    /// Ranges whose lease has expired.
    expired: u64,
    /// When the next retry is due.
    retry: Option<Millis>,
}

impl Wanted {
    fn is_settled(&self) -> bool {
        let nothing_leased = self.active + self.expired == 0;
        self.cursor == self.batch.runs && nothing_leased && self.retry.is_none()
    }
}

fn wanted(sql: &Sql, request: &ClaimRequest, now: Millis) -> Result<Vec<Wanted>, Failure> {
    let workloads = serde_json::Value::from(request.workloads.clone()).to_string();
    let params = params![now.0, workloads, request.only.map(|id| id.0)];
    let wanted = sql.rows(include_str!("sql/claim_wanted.sql"), params, |row| {
        Ok(Wanted {
            batch: row::batch(row)?,
            cursor: row.get("cursor")?,
            active: row.get("active")?,
            expired: row.get("expired")?,
            retry: row.get::<_, Option<i64>>("retry_ms")?.map(Millis),
        })
    })?;
    Ok(wanted)
}

/// What is to be leased, each kind in the order in which it is handed out.
struct Plan {
    expired: Vec<(BatchId, Range)>,
    due: Vec<(BatchId, Vec<RetryItem>)>,
    fresh: Vec<(BatchId, Range)>,
}

fn plan(
    sql: &Sql,
    request: &ClaimRequest,
    wanted: &[Wanted],
    now: Millis,
) -> Result<Plan, Failure> {
    let slots = request.slots.min(MAX_LEASES_PER_CLAIM);
    let expired = expired(sql, wanted, slots, now)?;
    let slots = slots - expired.len();
    let due = due(sql, request, wanted, slots, now)?;
    let slots = slots - due.len();
    let candidates = candidates(wanted, &expired);
    let fresh = share(&candidates, slots, &request.lengths);
    Ok(Plan { expired, due, fresh })
}

fn expired(
    sql: &Sql,
    wanted: &[Wanted],
    slots: usize,
    now: Millis,
) -> Result<Vec<(BatchId, Range)>, Failure> {
    let batches: Vec<i64> = wanted.iter().filter(|w| w.expired > 0).map(|w| w.batch.id.0).collect();
    if batches.is_empty() {
        return Ok(Vec::new());
    }
    let params = params![array(batches), now.0, slots];
    let read = |row: &rusqlite::Row<'_>| {
        Ok((BatchId(row.get("batch_id")?), Range { lo: row.get("lo")?, hi: row.get("hi")? }))
    };
    Ok(sql.rows(include_str!("sql/claim_expired.sql"), params, read)?)
}

/// Groups due retries into leases; batches take turns.
fn due(
    sql: &Sql,
    request: &ClaimRequest,
    wanted: &[Wanted],
    slots: usize,
    now: Millis,
) -> Result<Vec<(BatchId, Vec<RetryItem>)>, Failure> {
    let mut groups = Vec::new();
    let due = wanted.iter().filter(|wanted| wanted.retry.is_some_and(|due| due <= now));
    // Every batch has its first turn before any has its second: no more of them can get one.
    for wanted in due.take(slots) {
        let batch = wanted.batch.id;
        let params = params![batch.0, now.0, request.lengths.most_retries(batch) * slots];
        let items = sql.rows(include_str!("sql/claim_due.sql"), params, |row| {
            Ok(RetryItem { index: row.get("idx")?, attempts: row.get("attempts")? })
        })?;
        let length = request.lengths.retries_per_lease(batch, items.len(), slots);
        let chunks = items.chunks(length).enumerate();
        groups.extend(chunks.map(|(turn, items)| (turn, batch, items.to_vec())));
    }
    groups.sort_by_key(|(turn, batch, _)| (*turn, *batch));
    groups.truncate(slots);
    Ok(groups.into_iter().map(|(_, batch, items)| (batch, items)).collect())
}

/// The batches as they stand once the expired ranges are leased again.
fn candidates(wanted: &[Wanted], expired: &[(BatchId, Range)]) -> Vec<Candidate> {
    let again = |batch| expired.iter().filter(|(id, _)| *id == batch).count() as u64;
    let candidate = |wanted: &Wanted| Candidate {
        batch: wanted.batch.id,
        cursor: wanted.cursor,
        runs: wanted.batch.runs,
        active: wanted.active + again(wanted.batch.id),
    };
    wanted.iter().map(candidate).collect()
}

impl Plan {
    fn len(&self) -> usize {
        self.expired.len() + self.due.len() + self.fresh.len()
    }

    fn carry_out(self, sql: &Sql, worker: &str, until: Millis) -> Result<Vec<Lease>, Failure> {
        if self.len() == 0 {
            return Ok(Vec::new());
        }
        let mut taker = Taker { sql, worker, until, fences: fences(sql, self.len())? };
        let mut leases = Vec::with_capacity(self.len());
        for (batch, range) in self.expired {
            leases.push(taker.lease_again(batch, range)?);
        }
        for (batch, items) in self.due {
            leases.push(taker.lease_retries(batch, items)?);
        }
        let mut cursors = BTreeMap::new();
        for (batch, range) in self.fresh {
            leases.push(taker.lease_fresh(batch, range)?);
            cursors.insert(batch.0, range.hi);
        }
        for (batch, cursor) in cursors {
            sql.execute(include_str!("sql/claim_cursor.sql"), params![batch, cursor])?;
        }
        Ok(leases)
    }
}

/// As many new fences as there are leases.
pub(crate) fn fences(sql: &Sql, count: usize) -> Result<std::ops::RangeInclusive<i64>, Failure> {
    let last = sql.row(include_str!("sql/claim_fences.sql"), [count], |row| row.get(0))?;
    let last: i64 = last.ok_or_else(|| corrupt("claim", "the table `meta`"))?;
    Ok(last - count as i64 + 1..=last)
}

/// Writes leases for one worker.
struct Taker<'a> {
    sql: &'a Sql<'a>,
    worker: &'a str,
    until: Millis,
    fences: std::ops::RangeInclusive<i64>,
}

impl Taker<'_> {
    fn fence(&mut self) -> i64 {
        self.fences.next().expect("there are as many fences as leases")
    }

    fn lease_again(&mut self, batch: BatchId, range: Range) -> Result<Lease, Failure> {
        let fence = self.fence();
        let params = params![batch.0, range.hi, fence, self.worker, self.until.0];
        self.sql.execute(include_str!("sql/claim_again.sql"), params)?;
        Ok(Lease { batch, fence: Fence(fence), items: Items::Range(range) })
    }

    fn lease_retries(&mut self, batch: BatchId, items: Vec<RetryItem>) -> Result<Lease, Failure> {
        let fence = self.fence();
        let indexes = array(items.iter().map(|item| item.index));
        let params = params![batch.0, indexes, fence, self.worker, self.until.0];
        self.sql.execute(include_str!("sql/claim_retries.sql"), params)?;
        Ok(Lease { batch, fence: Fence(fence), items: Items::Retries(items) })
    }

    fn lease_fresh(&mut self, batch: BatchId, range: Range) -> Result<Lease, Failure> {
        let fence = self.fence();
        let params = params![batch.0, range.hi, range.lo, fence, self.worker, self.until.0];
        self.sql.execute(include_str!("sql/claim_fresh.sql"), params)?;
        Ok(Lease { batch, fence: Fence(fence), items: Items::Range(range) })
    }
}

fn answer(
    sql: &Sql,
    request: &ClaimRequest,
    wanted: Vec<Wanted>,
    leases: Vec<Lease>,
    now: Millis,
) -> Result<Claim, Failure> {
    let next_due = next_due(sql, &wanted)?.map(|due| due.since(now));
    let open = wanted.len() as u64;
    let settled = wanted.iter().filter(|w| w.is_settled()).map(|w| w.batch.id).collect();
    let leased: BTreeSet<BatchId> = leases.iter().map(|lease| lease.batch).collect();
    let batches = wanted.into_iter().map(|wanted| wanted.batch);
    let batches: Vec<Batch> = batches.filter(|batch| leased.contains(&batch.id)).collect();
    let snapshots = snapshots(sql, request, &batches)?;
    Ok(Claim { leases, batches, snapshots, settled, open, next_due })
}

fn next_due(sql: &Sql, wanted: &[Wanted]) -> Result<Option<Millis>, Failure> {
    let batches = array(wanted.iter().map(|wanted| wanted.batch.id));
    let due: Option<Option<i64>> =
        sql.row(include_str!("sql/claim_next_due.sql"), [batches], |row| row.get(0))?;
    Ok(due.flatten().map(Millis))
}

fn snapshots(
    sql: &Sql,
    request: &ClaimRequest,
    batches: &[Batch],
) -> Result<Vec<Snapshot>, Failure> {
    let hashes: BTreeSet<_> = batches.iter().map(|batch| batch.snapshot).collect();
    let unknown = hashes.into_iter().filter(|hash| !request.known.contains(hash));
    let read = |hash: SnapshotHash| {
        let text = sql.row(crate::SNAPSHOT, [hash.0], |row| row.get(0))?;
        let text = text.ok_or_else(|| corrupt("claim", format!("snapshot {hash}")))?;
        Ok(Snapshot::from_canonical(text))
    };
    unknown.map(read).collect()
}
