//! Of every key that waits, the first becomes due unless something holds it. Each call is short, because it locks the
//! table's lease.

use super::Adopted;
use crate::{
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
}
