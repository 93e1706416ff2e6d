//! Of every key that waits, the first becomes due unless something holds it. Each call is short, because it locks the
//! table's lease.

use super::Adopted;
use crate::{
    decode::get,
    error::corrupt,
    outbox::tend::{CALL, MOST, OPERATION, PATIENCE},
    pool::Params,
};
use tidegate_core::StoreError;
use tokio::time::Instant;
use tokio_postgres::types::Type;

impl Adopted {
    /// Looks at keys that somebody's decisions touched. The table stays disturbed until that is done.
    pub(super) async fn tend_noted(&self) -> Result<(), StoreError> {
        let params: Params<'_> = &[(&self.plan.table.adopted, Type::TEXT), (&MOST, Type::INT8)];
        let begun = Instant::now();
        loop {
            let more: bool = self
                .pool
                .with_connection(OPERATION, CALL, async |client| {
                    let sql = "select tidegate.tend_noted_adopted($1, $2) as more";
                    client.query_typed_one(sql, params).await?.try_get("more")
                })
                .await?;
            if !more || begun.elapsed() > PATIENCE {
                return Ok(());
            }
        }
    }

    /// Brings all that was set aside in order, however it got out of it.
    pub(super) async fn tend(&self) -> Result<(), StoreError> {
        let mut place = (String::new(), i64::MIN, 0_i64);
        loop {
            let params: Params<'_> = &[
                (&self.plan.table.adopted, Type::TEXT),
                (&MOST, Type::INT8),
                (&place.0, Type::TEXT),
                (&place.1, Type::INT8),
                (&place.2, Type::INT8),
            ];
            let sql = include_str!("../sql/adopted/tend_page.sql");
            let rows = self.pool.call(self.pool.leased(OPERATION), sql, params).await?;
            let row =
                rows.first().ok_or_else(|| corrupt(OPERATION, "the answer came back empty"))?;
            let Some(id) = get(OPERATION, row, "at_id")? else { return Ok(()) };
            place = (get(OPERATION, row, "at_sink")?, get(OPERATION, row, "at_key")?, id);
        }
    }
}
