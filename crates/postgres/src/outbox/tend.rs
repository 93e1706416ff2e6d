//! Of every key that waits, the first becomes due unless something holds it.
//!
//! Each call is short, because it locks lanes.

use super::share::numbers;
use crate::pool::{Params, Pool};
use std::time::Duration;
use tidegate_core::{StoreError, outbox::Lane};
use tokio::time::Instant;
use tokio_postgres::types::Type;

pub(crate) const OPERATION: &str = "find the first message of each key";

/// Messages or keys that one call looks at.
pub(crate) const MOST: i64 = 2_000;

/// How long a relay looks at keys that were noted before it goes on; the rest comes when it shares lanes again.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);

/// How long one call for keys that were noted may take. It may wait for lanes.
pub(crate) const CALL: Duration = Duration::from_secs(2);

/// Looks at keys that somebody's decisions touched. Their lanes stay disturbed until that is done: if it fails
/// or takes long, the lanes' relay is asked again.
pub(super) async fn tend_noted(pool: &Pool, lanes: &[Lane]) -> Result<(), StoreError> {
    let lanes = numbers(lanes.iter().copied());
    let params: Params<'_> = &[(&lanes, Type::INT2_ARRAY), (&MOST, Type::INT8)];
    let begun = Instant::now();
    loop {
        let more: bool = pool
            .with_connection(OPERATION, CALL, async |client| {
                let sql = "select tidegate.tend_noted($1, $2) as more";
                client.query_typed_one(sql, params).await?.try_get("more")
            })
            .await?;
        if !more || begun.elapsed() > PATIENCE {
            return Ok(());
        }
    }
}
