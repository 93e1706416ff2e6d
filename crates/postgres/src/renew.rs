//! More time for leases, or none.

use crate::{
    decode::{get, millis},
    pool::{Call, Pool},
};
use std::collections::HashSet;
use tidegate_core::{Fence, Items, Lease, StoreError, source::Renewal};
use tokio_postgres::types::Type;

/// Extends leases; returns those that are lost.
pub(crate) async fn renew(pool: &Pool, request: &Renewal) -> Result<Vec<Fence>, StoreError> {
    if request.leases.is_empty() {
        return Ok(Vec::new());
    }
    let (ranges, retries) = (Ranges::of(&request.leases), Retries::of(&request.leases));
    let rows = pool
        .query(
            Call::under("renew", request.lease),
            include_str!("sql/renew.sql"),
            &[
                (&millis(request.lease), Type::INT8),
                (&ranges.batch, Type::INT8_ARRAY),
                (&ranges.end, Type::INT8_ARRAY),
                (&ranges.fence, Type::INT8_ARRAY),
                (&retries.batch, Type::INT8_ARRAY),
                (&retries.index, Type::INT8_ARRAY),
                (&retries.fence, Type::INT8_ARRAY),
            ],
        )
        .await?;
    let lost = rows.iter().map(|row| get("renew", row, "fence").map(Fence));
    let lost: HashSet<Fence> = lost.collect::<Result<_, _>>()?;
    let fences = request.leases.iter().map(|lease| lease.fence);
    Ok(fences.filter(|fence| lost.contains(fence)).collect())
}

/// Gives leases back before their time.
pub(crate) async fn give_back(pool: &Pool, leases: &[Lease]) -> Result<(), StoreError> {
    if leases.is_empty() {
        return Ok(());
    }
    let (ranges, retries) = (Ranges::of(leases), Retries::of(leases));
    let of_retries = leases.iter().filter(|lease| matches!(lease.items, Items::Retries(_)));
    let (batches, fences): (Vec<i64>, Vec<i64>) =
        of_retries.map(|lease| (lease.batch.0, lease.fence.0)).unzip();
    let params = [
        (&ranges.batch as _, Type::INT8_ARRAY),
        (&ranges.fence as _, Type::INT8_ARRAY),
        (&batches as _, Type::INT8_ARRAY),
        (&fences as _, Type::INT8_ARRAY),
        (&retries.batch as _, Type::INT8_ARRAY),
        (&retries.index as _, Type::INT8_ARRAY),
        (&retries.fence as _, Type::INT8_ARRAY),
    ];
    pool.query("give back", include_str!("sql/give_back.sql"), &params).await.map(drop)
}

#[derive(Default)]
struct Ranges {
    batch: Vec<i64>,
    end: Vec<i64>,
    fence: Vec<i64>,
}

impl Ranges {
    fn of(leases: &[Lease]) -> Self {
        let mut columns = Self::default();
        for lease in leases {
            if let Items::Range(range) = &lease.items {
                columns.batch.push(lease.batch.0);
                columns.end.push(range.hi as i64);
                columns.fence.push(lease.fence.0);
            }
        }
        columns
    }
}

#[derive(Default)]
struct Retries {
    batch: Vec<i64>,
    index: Vec<i64>,
    fence: Vec<i64>,
}

impl Retries {
    fn of(leases: &[Lease]) -> Self {
        let mut columns = Self::default();
        for lease in leases {
            if let Items::Retries(retries) = &lease.items {
                columns.batch.extend(retries.iter().map(|_| lease.batch.0));
                columns.index.extend(retries.iter().map(|retry| retry.index as i64));
                columns.fence.extend(retries.iter().map(|_| lease.fence.0));
            }
        }
        columns
    }
}
