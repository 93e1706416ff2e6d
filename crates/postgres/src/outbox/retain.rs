//! Removing what was sent: a segment at a time, truncated as a whole.

use super::claim::message;
use crate::{
    Postgres,
    decode::{get, millis},
    error::corrupt,
};
use async_trait::async_trait;
use std::time::Duration;
use tidegate_core::{
    Message, MessageId, Retain, StoreError,
    outbox::{Origin, Sealed},
};
use tokio_postgres::{Transaction, types::Type};

/// A truncation waits for readers and holds up new ones while it does: not for long.
const LOCK_TIMEOUT: &str = "set local lock_timeout = '2s'";

/// Locks a segment, and truncates it: names cannot be parameters.
const SEGMENTS: [(&str, &str); 4] = [
    ("lock table only tidegate.message_0 in access exclusive mode", "truncate tidegate.message_0"),
    ("lock table only tidegate.message_1 in access exclusive mode", "truncate tidegate.message_1"),
    ("lock table only tidegate.message_2 in access exclusive mode", "truncate tidegate.message_2"),
    ("lock table only tidegate.message_3 in access exclusive mode", "truncate tidegate.message_3"),
];

#[async_trait]
impl Retain for Postgres {
    async fn seal(&self, age: Duration) -> Result<Option<Sealed>, StoreError> {
        const OPERATION: &str = "seal messages";
        let age_ms = millis(age);
        let params = [(&age_ms as _, Type::INT8)];
        self.pool.query(OPERATION, include_str!("../sql/outbox/rotate.sql"), &params).await?;
        let rows =
            self.pool.query(OPERATION, include_str!("../sql/outbox/seal.sql"), &params).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let place = i64::from(get::<i16>(OPERATION, row, "segment")?);
        let messages = get::<i64>(OPERATION, row, "messages")?.unsigned_abs();
        Ok(Some(Sealed { place, messages }))
    }

    async fn sealed(
        &self,
        sealed: Sealed,
        after: MessageId,
        limit: usize,
    ) -> Result<Vec<Message>, StoreError> {
        let name = self.outbox_name().await?;
        let params = [
            (&(sealed.place as i16) as _, Type::INT2),
            (&after.0 as _, Type::INT8),
            (&(limit as i64) as _, Type::INT8),
        ];
        let sql = include_str!("../sql/outbox/sealed.sql");
        let rows = self.pool.query("read sealed messages", sql, &params).await?;
        rows.iter().map(|row| message(name, row, Origin::Lane { due_in: None })).collect()
    }

    async fn discard(&self, sealed: Sealed) -> Result<u64, StoreError> {
        const OPERATION: &str = "discard messages";
        let (lock, truncate) = usize::try_from(sealed.place)
            .ok()
            .and_then(|place| SEGMENTS.get(place))
            .ok_or_else(|| corrupt(OPERATION, "there is no such segment"))?;
        self.pool
            .with_connection(OPERATION, async |client| {
                let transaction = client.transaction().await?;
                transaction.batch_execute(LOCK_TIMEOUT).await?;
                transaction.batch_execute(lock).await?;
                if !is_same(&transaction, sealed).await? {
                    return Ok(0);
                }
                let keep = include_str!("../sql/outbox/discard_keep.sql");
                let segment = sealed.place as i16;
                transaction.query_typed(keep, &[(&segment, Type::INT2)]).await?;
                transaction.batch_execute(truncate).await?;
                transaction.commit().await?;
                Ok(sealed.messages)
            })
            .await
    }
}

/// Whether nobody has added to a segment since it was sealed.
async fn is_same(
    transaction: &Transaction<'_>,
    sealed: Sealed,
) -> Result<bool, tokio_postgres::Error> {
    let check = include_str!("../sql/outbox/discard_check.sql");
    let (segment, messages) = (sealed.place as i16, sealed.messages as i64);
    let params = [(&segment as _, Type::INT2), (&messages as _, Type::INT8)];
    transaction.query_typed_one(check, &params).await?.try_get("same")
}
