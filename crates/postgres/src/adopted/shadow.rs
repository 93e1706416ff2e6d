//! What a relay would find, without delivering or writing anything.

use super::{Adopted, Advice, Order, encoding::Texts, message::Found};
use crate::{
    error::corrupt,
    outbox::inspect::{count, seconds},
};
use serde::Serialize;
use tidegate_core::{Kind, StoreError, limits::STORE_DEADLINE};
use tokio_postgres::Row;

const OPERATION: &str = "shadow table";

/// How many of the oldest rows are looked at one by one, and how many bytes of them.
const MOST_ROWS: i64 = 10_000;
const MOST_BYTES: i64 = 32 << 20;

/// How many rows that are no messages are named.
const MOST_NAMED: usize = 10;

/// What a relay would find in a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ShadowReport {
    /// The table, with its schema.
    pub table: String,
    /// In which order messages would be delivered.
    pub order: String,
    /// Rows that are pending.
    pub pending: u64,
    /// For how long the oldest has been.
    pub oldest_seconds: Option<f64>,
    /// By topic.
    pub topics: Vec<TopicCount>,
    /// Rows without a key: nothing keeps them in order.
    pub without_key: u64,
    /// Rows that have the same place in the order as another of their key. Those of one transaction go
    /// in the order in which they were written; the rest by chance.
    pub ties: u64,
    /// How many of the oldest rows were looked at one by one.
    pub examined: u64,
    /// Among these, how many are no messages.
    pub poison: u64,
    /// The first of them.
    pub poison_rows: Vec<PoisonRow>,
    /// What the table lacks.
    pub advice: Vec<Advice>,
    /// What else people should know.
    pub remarks: Vec<String>,
}

/// Pending rows of one topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TopicCount {
    /// Which topic; `None` if it is null.
    pub topic: Option<String>,
    /// How many rows.
    pub messages: u64,
}

/// A row that is no message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PoisonRow {
    /// Its id.
    pub row: String,
    /// Why.
    pub problem: String,
}

impl Adopted {
    /// What a relay would find now. Reads in one transaction that may not write, and needs no side
    /// tables: what an earlier relay has set aside counts as pending.
    pub async fn shadow(&self) -> Result<ShadowReport, StoreError> {
        let (topics, ties, rows) = match self.look(&self.statements.shown.shadow_topics).await {
            Err(error) if error.kind() == Kind::Corrupt => {
                self.look(&self.statements.shown_as_ascii.shadow_topics).await?
            }
            answer => answer?,
        };
        let texts = self.texts(&rows).await?;
        self.report(&texts, &topics, ties.first(), &rows)
    }

    /// Topics, ties and rows. `sql` shows topics.
    async fn look(&self, sql: &str) -> Result<(Vec<Row>, Vec<Row>, Vec<Row>), StoreError> {
        let [adopted, values] = self.mapped();
        let mapped = [adopted.clone(), values.clone()];
        let ordered = self.order() != Order::None;
        self.pool
            .with_connection(OPERATION, STORE_DEADLINE, async |client| {
                let transaction = client.build_transaction().read_only(true).start().await?;
                let topics = transaction.query_typed(sql, &mapped).await?;
                let ties = match ordered {
                    true => transaction.query_typed(&self.statements.shadow_ties, &mapped).await?,
                    false => Vec::new(),
                };
                let params = [
                    adopted,
                    values,
                    (&MOST_ROWS as _, tokio_postgres::types::Type::INT8),
                    (&MOST_BYTES as _, tokio_postgres::types::Type::INT8),
                ];
                let rows = transaction.query_typed(&self.statements.shadow_rows, &params).await?;
                transaction.rollback().await?;
                Ok((topics, ties, rows))
            })
            .await
    }

    fn report(
        &self,
        texts: &Texts<'_>,
        topics: &[Row],
        ties: Option<&Row>,
        rows: &[Row],
    ) -> Result<ShadowReport, StoreError> {
        let mut report = ShadowReport {
            table: self.table().to_owned(),
            order: self.order().promise().to_string(),
            ties: ties.map_or(Ok(0), |row| count(row, "messages"))?,
            examined: rows.len() as u64,
            advice: self.advice(),
            remarks: self.remarks().split_off(1),
            ..ShadowReport::default()
        };
        for row in topics {
            report.add_topic(row)?;
        }
        for row in rows {
            let found = Found::read(&self.plan, texts, row)?;
            report.look_at(found);
        }
        Ok(report)
    }
}

impl ShadowReport {
    fn add_topic(&mut self, row: &Row) -> Result<(), StoreError> {
        let unreadable = |error| corrupt(OPERATION, format!("a topic is unreadable: {error}"));
        let topic = row.try_get("topic").map_err(unreadable)?;
        let messages = count(row, "messages")?;
        self.pending += messages;
        self.without_key += count(row, "keyless")?;
        let oldest = seconds(row, "oldest_seconds")?.map(|age| age.as_secs_f64());
        self.oldest_seconds = match (self.oldest_seconds, oldest) {
            (Some(one), Some(other)) => Some(one.max(other)),
            (one, other) => one.or(other),
        };
        self.topics.push(TopicCount { topic, messages });
        Ok(())
    }

    fn look_at(&mut self, found: Found) {
        let Some(problem) = found.problem else { return };
        self.poison += 1;
        if self.poison_rows.len() < MOST_NAMED {
            self.poison_rows.push(PoisonRow { row: found.row_key, problem });
        }
    }
}
