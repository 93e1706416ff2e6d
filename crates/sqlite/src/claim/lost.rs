//! What was lost with its workers: ranges whose lease has expired, and retries that are suspects.

use super::{Alone, Wanted};
use crate::{
    errors::Failure,
    sql::{Millis, Sql, array},
};
use rusqlite::{Row, params};
use tidegate_core::{
    BatchId, Range,
    claim::ClaimRequest,
    limits::MAX_LEASES_PER_CLAIM,
    suspect::{self, Fate},
};

/// What can be leased again, with what becomes of it.
pub(super) struct Lost {
    ranges: Vec<(LostRange, Fate)>,
    retries: Vec<(LostRetry, Fate)>,
    /// The worker that claims has a suspect already.
    pub holds_suspect: bool,
    /// How many ranges are split, and how many runs given up, by this claim.
    most: usize,
}

struct LostRange {
    batch: BatchId,
    range: Range,
    fence: Option<i64>,
    losses: u32,
    suspect: bool,
}

struct LostRetry {
    batch: BatchId,
    index: u64,
    losses: u32,
}

impl Lost {
    pub(super) fn read(
        sql: &Sql,
        request: &ClaimRequest,
        wanted: &[Wanted],
        now: Millis,
    ) -> Result<Self, Failure> {
        let ranges = ranges(sql, wanted, now)?;
        let retries = retries(sql, wanted, now)?;
        let alone = ranges.iter().any(|(_, fate)| *fate == Fate::Alone) || !retries.is_empty();
        let holds_suspect = alone && holds_suspect(sql, &request.worker.0, now)?;
        let most = request.slots.min(MAX_LEASES_PER_CLAIM);
        Ok(Self { ranges, retries, holds_suspect, most })
    }

    /// Ranges that are leased again like any other.
    pub(super) fn leased_again(&self) -> impl Iterator<Item = (BatchId, Range)> {
        let again = self.ranges.iter().filter(|(_, fate)| *fate == Fate::Leased);
        again.map(|(lost, _)| (lost.batch, lost.range))
    }

    /// The first suspect, for a worker that holds none.
    pub(super) fn suspect(&self) -> Option<Alone> {
        let ranges = self.ranges.iter().filter(|(_, fate)| *fate == Fate::Alone);
        let ranges = ranges.map(|(lost, _)| Alone::Range(lost.batch, lost.range));
        let retries = self.retries.iter().filter(|(_, fate)| *fate == Fate::Alone);
        let retries = retries.map(|(lost, _)| Alone::Retry(lost.batch, lost.index));
        ranges.chain(retries).next().filter(|_| !self.holds_suspect)
    }

    /// Splits ranges and gives runs up. Returns whether there were any.
    pub(super) fn split_and_give_up(&self, sql: &Sql, now: Millis) -> Result<bool, Failure> {
        let ended = |fate: Fate| matches!(fate, Fate::Split | Fate::Dead);
        let ranges = self.ranges.iter().filter(|(_, fate)| ended(*fate)).take(self.most);
        let retries = self.retries.iter().filter(|(_, fate)| ended(*fate)).take(self.most);
        let mut any = false;
        for (lost, fate) in ranges {
            any = true;
            lost.remove(sql)?;
            match fate {
                Fate::Dead => lost.give_up(sql)?,
                _ => lost.split(sql, now)?,
            }
        }
        for (lost, _) in retries {
            any = true;
            let params = params![lost.batch.0, lost.index, suspect::reason(lost.losses)];
            sql.execute(include_str!("../sql/claim_give_up.sql"), params)?;
        }
        Ok(any)
    }
}

fn ranges(sql: &Sql, wanted: &[Wanted], now: Millis) -> Result<Vec<(LostRange, Fate)>, Failure> {
    let batches: Vec<i64> = wanted.iter().filter(|w| w.expired > 0).map(|w| w.batch.id.0).collect();
    if batches.is_empty() {
        return Ok(Vec::new());
    }
    let params = params![array(batches), now.0];
    let lost = sql.rows(include_str!("../sql/claim_expired.sql"), params, LostRange::read)?;
    let judge = |lost: LostRange| {
        let attempts = max_attempts(wanted, lost.batch);
        let fate = suspect::range_fate(lost.losses, lost.suspect, lost.range.len(), attempts);
        (lost, fate)
    };
    Ok(lost.into_iter().map(judge).collect())
}

fn retries(sql: &Sql, wanted: &[Wanted], now: Millis) -> Result<Vec<(LostRetry, Fate)>, Failure> {
    let batches: Vec<i64> = wanted.iter().filter(|w| w.suspects).map(|w| w.batch.id.0).collect();
    if batches.is_empty() {
        return Ok(Vec::new());
    }
    let params = params![array(batches), now.0];
    let lost = sql.rows(include_str!("../sql/claim_suspects.sql"), params, |row| {
        Ok(LostRetry {
            batch: BatchId(row.get("batch_id")?),
            index: row.get("idx")?,
            losses: row.get("tries")?,
        })
    })?;
    let judge = |lost: LostRetry| {
        let fate = suspect::run_fate(lost.losses, max_attempts(wanted, lost.batch));
        (lost, fate)
    };
    Ok(lost.into_iter().map(judge).collect())
}

fn max_attempts(wanted: &[Wanted], batch: BatchId) -> u32 {
    let found = wanted.iter().find(|wanted| wanted.batch.id == batch);
    found.map_or(u32::MAX, |wanted| wanted.batch.retry.max_attempts)
}

fn holds_suspect(sql: &Sql, worker: &str, now: Millis) -> Result<bool, Failure> {
    let params = params![worker, now.0];
    let holds = sql.row(include_str!("../sql/claim_alone.sql"), params, |row| row.get(0))?;
    Ok(holds.unwrap_or(false))
}

impl LostRange {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let fence = Some(row.get("fence")?).filter(|fence| *fence != 0);
        Ok(Self {
            batch: BatchId(row.get("batch_id")?),
            range: Range { lo: row.get("lo")?, hi: row.get("hi")? },
            fence: fence.or(row.get("lost")?),
            losses: row.get("tries")?,
            suspect: row.get("suspect")?,
        })
    }

    fn remove(&self, sql: &Sql) -> Result<(), Failure> {
        let params = params![self.batch.0, self.range.hi];
        sql.execute(include_str!("../sql/claim_lost_range.sql"), params)?;
        Ok(())
    }

    fn give_up(&self, sql: &Sql) -> Result<(), Failure> {
        let reason = suspect::reason(self.losses);
        let params = params![self.batch.0, self.range.lo, self.losses, reason];
        sql.execute(include_str!("../sql/claim_lost_run.sql"), params)?;
        Ok(())
    }

    fn split(&self, sql: &Sql, now: Millis) -> Result<(), Failure> {
        let parts = suspect::split(self.range);
        let parts: Vec<_> =
            parts.iter().map(|part| serde_json::json!([part.lo, part.hi])).collect();
        let parts = serde_json::Value::Array(parts).to_string();
        let params = params![self.batch.0, parts, now.0, self.fence];
        sql.execute(include_str!("../sql/claim_split.sql"), params)?;
        Ok(())
    }
}
