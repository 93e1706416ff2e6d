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
    for lease in leases {
        extend(sql, lease, now)?;
        if let Items::Retries(_) = lease.items {
            let params = params![lease.batch.0, lease.fence.0];
            sql.execute(include_str!("sql/give_back_retries.sql"), params)?;
        }
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
