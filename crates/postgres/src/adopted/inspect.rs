//! Reading for people, and what they decide.

use super::{
    Adopted,
    message::Found,
    sql::{Shown, Statements},
};
use crate::{
    decode::get,
    outbox::inspect::{
        Columns, OLDEST_SNAPSHOT, a_holder, audit_line, count, group, relay, steered, stuck, topic,
    },
    outbox::trouble,
    pool::Params,
};
use async_trait::async_trait;
use tidegate_core::{
    InspectOutbox, Kind, MessageId, Position, StoreError,
    limits::MAX_LISTED,
    outbox::{
        AuditLine, DeadGroup, Decision, Origin, OutboxStatus, Outstanding, SteerPage, Steered,
        Stored, Stuck, StuckQuery, StuckState,
    },
};
use tokio_postgres::{Row, types::Type};

const OPERATION: &str = "inspect outbox";

#[async_trait]
impl InspectOutbox for Adopted {
    async fn outbox(&self) -> Result<OutboxStatus, StoreError> {
        let topics = self.inspect_shown(|it| &it.status, &self.mapped()).await?;
        let sql = include_str!("../sql/adopted/relays.sql");
        let relays = self.inspect(sql, &self.mapped()[..1]).await?;
        let oldest_snapshot = self.inspect(OLDEST_SNAPSHOT, &[]).await?;
        Ok(OutboxStatus {
            topics: topics.iter().map(topic).collect::<Result<_, _>>()?,
            relays: relays.iter().map(relay).collect::<Result<_, _>>()?,
            sinks: trouble::read(&self.pool, self.table()).await?,
            oldest_snapshot: oldest_snapshot.first().map(a_holder).transpose()?,
            // Rows are read as soon as they are committed, by state: nothing holds them back.
            ..OutboxStatus::default()
        })
    }

    async fn outstanding(&self) -> Result<Outstanding, StoreError> {
        let rows = self.inspect(&self.statements.outstanding, &self.mapped()).await?;
        let messages = rows.first().map_or(Ok(0), |row| count(row, "messages"))?;
        Ok(Outstanding { messages, limit: None })
    }

    async fn dead_groups(&self) -> Result<Vec<DeadGroup>, StoreError> {
        let params = [self.mapped()[0].clone(), (&(MAX_LISTED as i64) as _, Type::INT8)];
        let sql = include_str!("../sql/adopted/dead_groups.sql");
        self.inspect(sql, &params).await?.iter().map(group).collect()
    }

    async fn stuck(&self, query: StuckQuery) -> Result<Vec<Stuck>, StoreError> {
        let which = Columns::of(&query.which);
        let [adopted, values] = self.mapped();
        let params = [
            adopted,
            values,
            (&query.state.map(StuckState::as_str) as _, Type::TEXT),
            (&which.ids as _, Type::INT8_ARRAY),
            (&which.topic as _, Type::TEXT),
            (&which.sink as _, Type::TEXT),
            (&which.reason as _, Type::TEXT),
            (&MessageId::number_before(query.after.as_ref()) as _, Type::INT8),
            (&(query.limit.min(MAX_LISTED) as i64) as _, Type::INT8),
        ];
        self.inspect_shown(|it| &it.stuck, &params).await?.iter().map(stuck).collect()
    }

    async fn message(&self, id: MessageId) -> Result<Option<Stored>, StoreError> {
        let Some(id) = id.as_number() else { return Ok(None) };
        let [adopted, values] = self.mapped();
        let params = [adopted, values, (&id as _, Type::INT8)];
        let rows = self.inspect(&self.statements.row, &params).await?;
        let texts = self.texts(&rows).await?;
        let message = |row: &Row| {
            let found = Found::read(&self.plan, &texts, row)?;
            let message = found.message(Position(id), Origin::Lane { due_in: None });
            Ok(Stored { message, sent: get(OPERATION, row, "sent")? })
        };
        rows.first().map(message).transpose()
    }

    async fn steer_dead(&self, page: SteerPage) -> Result<Steered, StoreError> {
        let which = Columns::of(&page.which);
        let [adopted, values] = self.mapped();
        let most = page.most as i64;
        let chosen = [
            (&which.ids as _, Type::INT8_ARRAY),
            (&which.topic as _, Type::TEXT),
            (&which.sink as _, Type::TEXT),
            (&which.reason as _, Type::TEXT),
            (&MessageId::number_before(page.after.as_ref()) as _, Type::INT8),
            (&most as _, Type::INT8),
            (&page.by.who as _, Type::TEXT),
            (&page.by.why as _, Type::TEXT),
            (&page.line as _, Type::INT8),
        ];
        let rows = match page.decision {
            Decision::Retry => {
                let params: Vec<_> = [adopted].into_iter().chain(chosen).collect();
                let sql = include_str!("../sql/adopted/retry_dead.sql");
                self.pool.call("retry dead messages", sql, &params).await?
            }
            Decision::Drop => {
                let params: Vec<_> = [adopted, values].into_iter().chain(chosen).collect();
                let sql = &self.statements.drop_dead;
                let rows = self.pool.query("drop dead messages", sql, &params).await?;
                // If that fails, whoever has the lease does it when it renews it.
                let _ = self.tend_noted().await;
                rows
            }
        };
        steered(&rows)
    }

    async fn audit(&self, limit: usize) -> Result<Vec<AuditLine>, StoreError> {
        let limit = limit.min(MAX_LISTED) as i64;
        let params = [self.mapped()[0].clone(), (&limit as _, Type::INT8)];
        let sql = include_str!("../sql/adopted/audit.sql");
        self.inspect(sql, &params).await?.iter().map(audit_line).collect()
    }
}

impl Adopted {
    async fn inspect(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>, StoreError> {
        self.pool.query(OPERATION, sql, params).await
    }

    /// Shows texts as they are if the server can convert all of them.
    async fn inspect_shown(
        &self,
        statement: fn(&Shown) -> &str,
        params: Params<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        let Statements { shown, shown_as_ascii, .. } = &self.statements;
        match self.inspect(statement(shown), params).await {
            Err(error) if error.kind() == Kind::Corrupt => {
                self.inspect(statement(shown_as_ascii), params).await
            }
            answer => answer,
        }
    }
}
