//! Leases: expired ones first, then due retries, then fresh ranges.

mod lost;

use crate::{
    errors::{Failure, corrupt},
    row,
    sql::{Millis, Sql, array},
};
use lost::Lost;
use rusqlite::params;
use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{BuildHasher, RandomState},
};
use tidegate_core::{
    Batch, BatchId, Fence, Items, Lease, Range, RetryItem, Snapshot, SnapshotHash,
    claim::{Candidate, Claim, ClaimRequest, share},
    limits::{DUE_WINDOW, MAX_LEASES_PER_CLAIM},
    stamp::stamp,
};

pub(crate) fn claim(sql: &Sql, request: &ClaimRequest) -> Result<Claim, Failure> {
    let now = sql.now()?;
    let wanted = wanted(sql, request, now)?;
    let lost = Lost::read(sql, request, &wanted, now)?;
    let plan = plan(sql, request, &wanted, &lost, now)?;
    let alone = lost.holds_suspect || (plan.alone.is_some() && !request.lease.is_zero());
    let leases = plan.carry_out(sql, &request.worker.0, now.plus(request.lease))?;
    let soon = lost.split_and_give_up(sql, now)?;
    let next_due = match soon {
        true => Some(now),
        false => {
            let granted = (!leases.is_empty()).then_some(now.plus(request.lease));
            next_due(sql, &wanted, alone, now)?.into_iter().chain(granted).min()
        }
    };
    let next_due = next_due.map(|due| due.since(now));
    Ok(Claim { next_due, ..answer(sql, request, wanted, leases)? })
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
    /// Some of its retries are suspects.
    suspects: bool,
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
            suspects: row.get("suspects")?,
        })
    })?;
    Ok(wanted)
}

/// What is to be leased, each kind in the order in which it is handed out.
struct Plan {
    expired: Vec<(BatchId, Range)>,
    /// A suspect.
    alone: Option<Alone>,
    due: Vec<(BatchId, Vec<RetryItem>)>,
    fresh: Vec<(BatchId, Range)>,
}

/// A suspect to be leased.
#[derive(Clone, Copy)]
enum Alone {
    Range(BatchId, Range),
    Retry(BatchId, u64),
}

fn plan(
    sql: &Sql,
    request: &ClaimRequest,
    wanted: &[Wanted],
    lost: &Lost,
    now: Millis,
) -> Result<Plan, Failure> {
    let slots = request.slots.min(MAX_LEASES_PER_CLAIM);
    let expired: Vec<(BatchId, Range)> = lost.leased_again().take(slots).collect();
    let slots = slots - expired.len();
    let alone = lost.suspect().filter(|_| slots > 0);
    let slots = slots - usize::from(alone.is_some());
    let due = due(sql, request, wanted, slots, now)?;
    let slots = slots - due.len();
    let again = expired.iter().map(|(batch, _)| *batch).chain(match alone {
        Some(Alone::Range(batch, _)) => Some(batch),
        _ => None,
    });
    let candidates = candidates(wanted, &again.collect::<Vec<_>>());
    let fresh = share(&candidates, slots, &request.lengths);
    Ok(Plan { expired, alone, due, fresh })
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
        let most = request.lengths.most_retries(batch) * slots;
        let params = params![batch.0, now.0, most, most.max(DUE_WINDOW as usize)];
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

/// The batches as they stand once expired ranges of these batches are leased again.
fn candidates(wanted: &[Wanted], expired: &[BatchId]) -> Vec<Candidate> {
    let again = |batch| expired.iter().filter(|id| **id == batch).count() as u64;
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
        let alone = usize::from(self.alone.is_some());
        self.expired.len() + alone + self.due.len() + self.fresh.len()
    }

    fn carry_out(self, sql: &Sql, worker: &str, until: Millis) -> Result<Vec<Lease>, Failure> {
        if self.len() == 0 {
            return Ok(Vec::new());
        }
        let noise = RandomState::new().hash_one(until.0);
        let mut taker = Taker { sql, worker, until, fences: fences(sql, self.len())?, noise };
        let mut leases = Vec::with_capacity(self.len());
        for (batch, range) in self.expired {
            leases.push(taker.lease_again(batch, range, false)?);
        }
        match self.alone {
            Some(Alone::Range(batch, range)) => leases.push(taker.lease_again(batch, range, true)?),
            Some(Alone::Retry(batch, index)) => leases.push(taker.lease_suspect(batch, index)?),
            None => {}
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

/// As many new numbers of fences as there are leases.
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
    /// A file that was restored while workers live counts on from an earlier number.
    noise: u64,
}

impl Taker<'_> {
    fn fence(&mut self) -> i64 {
        stamp(self.fences.next().expect("there are as many fences as leases"), self.noise)
    }

    fn lease_again(
        &mut self,
        batch: BatchId,
        range: Range,
        suspect: bool,
    ) -> Result<Lease, Failure> {
        let fence = self.fence();
        let params = params![batch.0, range.hi, fence, self.worker, self.until.0];
        self.sql.execute(include_str!("sql/claim_again.sql"), params)?;
        Ok(Lease { batch, fence: Fence(fence), items: Items::Range(range), suspect })
    }

    fn lease_suspect(&mut self, batch: BatchId, index: u64) -> Result<Lease, Failure> {
        let fence = self.fence();
        let params = params![batch.0, index, fence, self.worker, self.until.0];
        let leased = include_str!("sql/claim_suspect.sql");
        let attempts = self.sql.row(leased, params, |row| row.get(0))?;
        let attempts = attempts.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
        let items = Items::Retries(vec![RetryItem { index, attempts }]);
        Ok(Lease { batch, fence: Fence(fence), items, suspect: true })
    }

    fn lease_retries(&mut self, batch: BatchId, items: Vec<RetryItem>) -> Result<Lease, Failure> {
        let fence = self.fence();
        let indexes = array(items.iter().map(|item| item.index));
        let params = params![batch.0, indexes, fence, self.worker, self.until.0];
        self.sql.execute(include_str!("sql/claim_retries.sql"), params)?;
        let items = Items::Retries(items);
        Ok(Lease { batch, fence: Fence(fence), items, suspect: false })
    }

    fn lease_fresh(&mut self, batch: BatchId, range: Range) -> Result<Lease, Failure> {
        let fence = self.fence();
        let params = params![batch.0, range.hi, range.lo, fence, self.worker, self.until.0];
        self.sql.execute(include_str!("sql/claim_fresh.sql"), params)?;
        Ok(Lease { batch, fence: Fence(fence), items: Items::Range(range), suspect: false })
    }
}

fn answer(
    sql: &Sql,
    request: &ClaimRequest,
    wanted: Vec<Wanted>,
    leases: Vec<Lease>,
) -> Result<Claim, Failure> {
    let open = wanted.len() as u64;
    let settled = wanted.iter().filter(|w| w.is_settled()).map(|w| w.batch.id).collect();
    let leased: BTreeSet<BatchId> = leases.iter().map(|lease| lease.batch).collect();
    let batches = wanted.into_iter().map(|wanted| wanted.batch);
    let batches: Vec<Batch> = batches.filter(|batch| leased.contains(&batch.id)).collect();
    let snapshots = snapshots(sql, request, &batches)?;
    Ok(Claim { leases, batches, snapshots, settled, open, next_due: None })
}

/// When something can be claimed next. With `alone` suspects do not count.
fn next_due(
    sql: &Sql,
    wanted: &[Wanted],
    alone: bool,
    now: Millis,
) -> Result<Option<Millis>, Failure> {
    let batches = array(wanted.iter().map(|wanted| wanted.batch.id));
    let params = params![batches, alone, now.0];
    let due: Option<Option<i64>> =
        sql.row(include_str!("sql/claim_next_due.sql"), params, |row| row.get(0))?;
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
