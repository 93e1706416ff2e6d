//! Removing what was sent: a segment at a time, truncated as a whole.

use super::claim::message;
use crate::{
    Postgres,
    decode::{get, millis},
    error::{self, corrupt},
};
use async_trait::async_trait;
use std::time::Duration;
use tidegate_core::{
    Message, MessageId, Retain, StoreError,
    limits::STORE_DEADLINE,
    outbox::{Origin, Sealed},
};
use tokio_postgres::{Row, types::Type};

/// A truncation waits for readers and holds up new ones while it does: not for long.
const LOCK_TIMEOUT: &str = "set local lock_timeout = '2s'";

const SEAL: &str = include_str!("../sql/outbox/seal.sql");

/// One of the tables that hold messages in turn.
#[derive(Clone, Copy)]
struct Segment(i16);

impl Segment {
    fn of(operation: &'static str, sealed: Sealed) -> Result<Self, StoreError> {
        let number = i16::try_from(sealed.place).ok().filter(|number| (0..4).contains(number));
        number.map(Self).ok_or_else(|| corrupt(operation, "there is no such segment"))
    }

    /// A statement about the first segment, for this one: names cannot be parameters.
    fn sql(self, about_first: &str) -> String {
        about_first.replace("tidegate.message_0", &format!("tidegate.message_{}", self.0))
    }
}

#[async_trait]
impl Retain for Postgres {
    async fn seal(&self, age: Duration) -> Result<Option<Sealed>, StoreError> {
        const OPERATION: &str = "seal messages";
        let age_ms = millis(age);
        let params = [(&age_ms as _, Type::INT8)];
        self.pool.query(OPERATION, include_str!("../sql/outbox/rotate.sql"), &params).await?;
        let closed = include_str!("../sql/outbox/closed.sql");
        for row in self.pool.query(OPERATION, closed, &params).await? {
            let segment = Segment(get(OPERATION, &row, "segment")?);
            let rows = self.pool.query(OPERATION, &segment.sql(SEAL), &[]).await?;
            let messages = rows.first().map(sent).transpose();
            let messages = messages.map_err(|error| error::failed(OPERATION, error))?;
            if let Some(messages) = messages.flatten() {
                return Ok(Some(Sealed { place: segment.0.into(), messages }));
            }
        }
        Ok(None)
    }

    async fn sealed(
        &self,
        sealed: Sealed,
        after: MessageId,
        limit: usize,
    ) -> Result<Vec<Message>, StoreError> {
        let name = self.outbox_name().await?;
        const OPERATION: &str = "read sealed messages";
        let sql = Segment::of(OPERATION, sealed)?.sql(include_str!("../sql/outbox/sealed.sql"));
        let params = [(&after.0 as _, Type::INT8), (&(limit as i64) as _, Type::INT8)];
        let rows = self.pool.query(OPERATION, &sql, &params).await?;
        rows.iter().map(|row| message(name, row, Origin::Lane { due_in: None })).collect()
    }

    async fn discard(&self, sealed: Sealed) -> Result<u64, StoreError> {
        const OPERATION: &str = "discard messages";
        let segment = Segment::of(OPERATION, sealed)?;
        let lock = segment.sql("lock table only tidegate.message_0 in access exclusive mode");
        let keep = segment.sql(include_str!("../sql/outbox/discard_keep.sql"));
        let truncate = segment.sql("truncate tidegate.message_0");
        self.pool
            .with_connection(OPERATION, STORE_DEADLINE, async |client| {
                let transaction = client.transaction().await?;
                transaction.batch_execute(LOCK_TIMEOUT).await?;
                transaction.batch_execute(&lock).await?;
                let still = transaction.query_typed_one(&segment.sql(SEAL), &[]).await?;
                if sent(&still)? != Some(sealed.messages) {
                    return Ok(0);
                }
                transaction.query_typed(&keep, &[]).await?;
                transaction.batch_execute(&truncate).await?;
                transaction.commit().await?;
                Ok(sealed.messages)
            })
            .await
    }
}

/// How many messages of a segment were sent; nothing if some are still to be read.
fn sent(row: &Row) -> Result<Option<u64>, tokio_postgres::Error> {
    Ok(row.try_get::<_, Option<i64>>("messages")?.map(i64::unsigned_abs))
}
