//! Messages come in: in a transaction of their own, or in the caller's.

use crate::{
    Postgres,
    decode::{get, millis},
    error,
};
use async_trait::async_trait;
use tidegate_core::{MessageId, NewMessage, Publish, StoreError};
use tokio_postgres::{
    GenericClient, Row,
    types::{ToSql, Type},
};

const OPERATION: &str = "publish";
const SQL: &str = include_str!("../sql/outbox/publish.sql");

/// Publishes messages in the caller's own transaction: they are there if and when it commits. One
/// statement, whatever their number.
pub async fn publish(
    transaction: &impl GenericClient,
    messages: &[NewMessage],
) -> Result<Vec<MessageId>, StoreError> {
    let columns = Columns::of(messages)?;
    let rows = transaction.query_typed(SQL, &columns.params()).await;
    ids(&rows.map_err(|error| error::failed(OPERATION, error))?)
}

#[async_trait]
impl Publish for Postgres {
    async fn publish(&self, messages: Vec<NewMessage>) -> Result<Vec<MessageId>, StoreError> {
        let columns = Columns::of(&messages)?;
        ids(&self.pool.query(OPERATION, SQL, &columns.params()).await?)
    }

    async fn limit_outstanding(&self, most: Option<u64>) -> Result<(), StoreError> {
        let most = most.map(|most| i64::try_from(most).unwrap_or(i64::MAX));
        let sql = include_str!("../sql/outbox/limit.sql");
        self.pool.query("limit outstanding", sql, &[(&most, Type::INT8)]).await?;
        Ok(())
    }
}

fn ids(rows: &[Row]) -> Result<Vec<MessageId>, StoreError> {
    rows.iter().map(|row| get(OPERATION, row, "id").map(MessageId::number)).collect()
}

/// Messages as arrays, one per column.
#[derive(Default)]
struct Columns<'a> {
    topic: Vec<&'a str>,
    key: Vec<Option<&'a str>>,
    payload: Vec<&'a [u8]>,
    headers: Vec<Option<String>>,
    delay_ms: Vec<Option<i64>>,
}

impl<'a> Columns<'a> {
    fn of(messages: &'a [NewMessage]) -> Result<Self, StoreError> {
        let mut columns = Self::default();
        for message in messages {
            message.check()?;
            let headers =
                (!message.headers.is_empty()).then(|| serde_json::to_string(&message.headers));
            let headers = headers.transpose().map_err(|error| {
                error::corrupt(OPERATION, format!("headers cannot be written: {error}"))
            })?;
            columns.topic.push(&message.topic);
            columns.key.push(message.key.as_deref());
            columns.payload.push(&message.payload);
            columns.headers.push(headers);
            columns.delay_ms.push(message.delay.map(millis));
        }
        Ok(columns)
    }

    fn params(&self) -> [(&(dyn ToSql + Sync), Type); 5] {
        [
            (&self.topic, Type::TEXT_ARRAY),
            (&self.key, Type::TEXT_ARRAY),
            (&self.payload, Type::BYTEA_ARRAY),
            (&self.headers, Type::TEXT_ARRAY),
            (&self.delay_ms, Type::INT8_ARRAY),
        ]
    }
}
