//! Progress, results, failures and aggregates, all or nothing.

use crate::{
    errors::Failure,
    sql::{Millis, Sql, array},
};
use rusqlite::params;
use tidegate_core::{
    BatchId, Page,
    settle::{Failed, Part, Progress, Settled, Settlement, Total},
};

/// The caller keeps the transaction only if the answer is `Applied`.
pub(crate) fn settle(sql: &Sql, settlement: &Settlement) -> Result<Settled, Failure> {
    let totals = &settlement.totals;
    let stored = totals.iter().map(|total| stored(sql, total)).collect::<Result<Vec<_>, _>>()?;
    let sent_again = totals.iter().zip(&stored).all(|(total, stored)| total.sequence == *stored);
    if sent_again && !totals.is_empty() {
        return Ok(Settled::Applied);
    }
    let strange = totals.iter().zip(&stored).filter(|(total, stored)| total.before != **stored);
    let forgotten: Vec<BatchId> = strange.map(|(total, _)| total.batch).collect();
    if !forgotten.is_empty() {
        return Ok(Settled::Forgotten(forgotten));
    }
    let now = sql.now()?;
    let until = now.plus(settlement.lease);
    let mut late = Vec::new();
    for part in &settlement.parts {
        if !advance(sql, part, until)? {
            late.push(part.fence);
        }
    }
    if !late.is_empty() {
        return Ok(Settled::Late(late));
    }
    for part in &settlement.parts {
        write_part(sql, part, now)?;
    }
    for total in &settlement.totals {
        write_total(sql, total)?;
    }
    Ok(Settled::Applied)
}

/// The sequence of the row that a total overwrites.
fn stored(sql: &Sql, total: &Total) -> Result<i64, Failure> {
    let params = params![total.batch.0, total.accumulator.0];
    let stored = sql.row(include_str!("sql/settle_sequence.sql"), params, |row| row.get(0))?;
    Ok(stored.unwrap_or(Total::NONE))
}

/// Moves a lease on by what is settled; says whether it was held.
fn advance(sql: &Sql, part: &Part, until: Millis) -> Result<bool, Failure> {
    let (batch, fence) = (part.batch.0, part.fence.0);
    match &part.progress {
        Progress::Range { settled, end } if settled.hi == *end => {
            let params = params![batch, end, fence, settled.lo];
            Ok(sql.execute(include_str!("sql/settle_end.sql"), params)? == 1)
        }
        Progress::Range { settled, end } => {
            let params = params![batch, end, fence, settled.lo, settled.hi, until.0];
            Ok(sql.execute(include_str!("sql/settle_advance.sql"), params)? == 1)
        }
        Progress::Retries { settled } => {
            let params = params![batch, array(settled), fence];
            let held = sql.execute(include_str!("sql/settle_retries.sql"), params)?;
            sql.execute(include_str!("sql/settle_renew.sql"), params![batch, fence, until.0])?;
            Ok(held == settled.len())
        }
    }
}

fn write_part(sql: &Sql, part: &Part, now: Millis) -> Result<(), Failure> {
    if let Some(page) = &part.page {
        write_page(sql, part.batch.0, page)?;
    }
    if !part.failed.is_empty() {
        let failed = failed(&part.failed, now);
        sql.execute(include_str!("sql/settle_failed.sql"), params![part.batch.0, failed])?;
    }
    Ok(())
}

fn write_page(sql: &Sql, batch: i64, page: &Page) -> Result<(), Failure> {
    let indexes = page.indexes.as_ref().map(array);
    let params = params![batch, page.range.lo, page.range.hi, indexes, page.results];
    sql.execute(include_str!("sql/settle_page.sql"), params)?;
    Ok(())
}

/// Failures as the array that the statement takes.
fn failed(failed: &[Failed], now: Millis) -> String {
    let row = |failed: &Failed| {
        let due = failed.delay.map(|delay| now.plus(delay).0);
        serde_json::json!([failed.index, failed.attempts, failed.reason, due])
    };
    serde_json::Value::Array(failed.iter().map(row).collect()).to_string()
}

fn write_total(sql: &Sql, total: &Total) -> Result<(), Failure> {
    let params = params![total.batch.0, total.accumulator.0, total.sequence, total.body];
    sql.execute(include_str!("sql/settle_total.sql"), params)?;
    Ok(())
}
