//! More time for leases, or none.

use crate::{
    errors::Failure,
    sql::{Millis, Sql, array},
};
use rusqlite::params;
use tidegate_core::{Fence, Items, Lease, source::Renewal};

/// Returns the fences of the leases that are lost.
pub(crate) fn renew(sql: &Sql, request: &Renewal) -> Result<Vec<Fence>, Failure> {
    let until = sql.now()?.plus(request.lease);
    let mut lost = Vec::new();
    for lease in &request.leases {
        if !extend(sql, lease, until)? {
            lost.push(lease.fence);
        }
    }
    Ok(lost)
}

pub(crate) fn give_back(sql: &Sql, leases: &[Lease]) -> Result<(), Failure> {
    let now = sql.now()?;
    for Lease { batch, fence, items, .. } in leases {
        match items {
            Items::Range(range) => give_back_range(sql, batch.0, range.hi, fence.0, now)?,
            Items::Retries(items) => {
                let params = params![batch.0, fence.0, now.0];
                sql.execute(include_str!("sql/give_back_retries.sql"), params)?;
                let indexes = array(items.iter().map(|item| item.index));
                let params = params![batch.0, indexes, fence.0];
                sql.execute(include_str!("sql/give_back_alive_retries.sql"), params)?;
            }
        }
    }
    Ok(())
}

/// What was lost before may be in parts by now.
fn give_back_range(sql: &Sql, batch: i64, hi: u64, fence: i64, now: Millis) -> Result<(), Failure> {
    let params = params![batch, hi, fence, now.0];
    if sql.execute(include_str!("sql/give_back_range.sql"), params)? == 0 {
        sql.execute(include_str!("sql/give_back_alive_range.sql"), params![batch, fence])?;
    }
    Ok(())
}

/// Lets a lease last until a time; says whether all of it is held.
fn extend(sql: &Sql, lease: &Lease, until: Millis) -> Result<bool, Failure> {
    let (batch, fence) = (lease.batch.0, lease.fence.0);
    match &lease.items {
        Items::Range(range) => {
            let params = params![batch, range.hi, fence, until.0];
            Ok(sql.execute(include_str!("sql/renew_range.sql"), params)? == 1)
        }
        Items::Retries(items) => {
            let indexes = array(items.iter().map(|item| item.index));
            let params = params![batch, indexes, fence, until.0];
            let held = sql.execute(include_str!("sql/renew_retries.sql"), params)?;
            Ok(held == items.len())
        }
    }
}
