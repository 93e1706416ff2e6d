//! Removing what was sent: a segment at a time, truncated as a whole.

use super::claim::message;
use crate::{
    Postgres,
    decode::{get, millis},
    pool::jitter,
};
use async_trait::async_trait;
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};
use tidegate_core::{
    Class, Kind, Message, MessageId, Retain, StoreError,
    outbox::{Origin, Sealed},
};
use tokio::time::sleep;
use tokio_postgres::types::Type;

/// For how long one process alone tries to truncate a segment.
const LEASE: Duration = Duration::from_secs(60);

/// For how long it tries, for how long at a time, and the longest pause between. Relays leave the segment out meanwhile.
const TRYING: Duration = Duration::from_secs(15);
const TRY: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(200);

/// Whoever has used a segment for so long is not waited for.
const LONG: Duration = Duration::from_secs(1);

/// Messages that were set aside and are copied in one transaction.
const COPIED: i64 = 500;

const SEAL: &str = "seal messages";
const DISCARD: &str = "discard messages";

/// One of the tables that hold messages in turn.
#[derive(Clone, Copy)]
struct Segment(i16);

impl Segment {
    fn of(sealed: Sealed) -> Self {
        Self(sealed.place.rem_euclid(4) as i16)
    }

    /// A statement about the first segment, for this one: names cannot be parameters.
    fn sql(self, about_first: &str) -> String {
        about_first.replace("tidegate.message_0", &format!("tidegate.message_{}", self.0))
    }
}

#[async_trait]
impl Retain for Postgres {
    async fn seal(&self, age: Duration) -> Result<Option<Sealed>, StoreError> {
        let age_ms = millis(age);
        let params = [(&age_ms as _, Type::INT8)];
        self.pool.call(SEAL, include_str!("../sql/outbox/rotate.sql"), &params).await?;
        let closed = include_str!("../sql/outbox/closed.sql");
        for row in self.pool.query(SEAL, closed, &params).await? {
            let segment = Segment(get(SEAL, &row, "segment")?);
            if let Some(messages) = self.count_sent(segment).await? {
                return Ok(Some(Sealed { place: get(SEAL, &row, "turn")?, messages }));
            }
        }
        Ok(None)
    }

    async fn sealed(
        &self,
        sealed: Sealed,
        after: Option<MessageId>,
        limit: usize,
    ) -> Result<Vec<Message>, StoreError> {
        let after = MessageId::number_before(after.as_ref());
        let name = self.outbox_name().await?;
        const OPERATION: &str = "read sealed messages";
        let sql = Segment::of(sealed).sql(include_str!("../sql/outbox/sealed.sql"));
        let params = [(&after as _, Type::INT8), (&(limit as i64) as _, Type::INT8)];
        let rows = self.pool.query(OPERATION, &sql, &params).await?;
        rows.iter().map(|row| message(name, row, Origin::Lane { due_in: None })).collect()
    }

    async fn discard(&self, sealed: Sealed) -> Result<u64, StoreError> {
        if !self.lease_segment(sealed, Some(LEASE)).await? {
            return Err(busy("another process is removing them"));
        }
        let discarded = self.discard_leased(sealed).await;
        // If that fails, the lease runs out by itself.
        let _ = self.lease_segment(sealed, None).await;
        discarded
    }
}

impl Postgres {
    /// How many messages of a segment were sent; nothing if some are still to be read.
    async fn count_sent(&self, segment: Segment) -> Result<Option<u64>, StoreError> {
        let sql = "select tidegate.count_sent($1) as messages";
        let rows = self.pool.call(SEAL, sql, &[(&segment.0, Type::INT2)]).await?;
        let count = rows.first().map(|row| get::<Option<i64>>(SEAL, row, "messages"));
        Ok(count.transpose()?.flatten().map(i64::unsigned_abs))
    }

    async fn lease_segment(
        &self,
        sealed: Sealed,
        lease: Option<Duration>,
    ) -> Result<bool, StoreError> {
        let lease_ms = lease.map(millis);
        let params = [(&sealed.place as _, Type::INT8), (&lease_ms as _, Type::INT8)];
        let sql = include_str!("../sql/outbox/discard_lease.sql");
        Ok(!self.pool.query(DISCARD, sql, &params).await?.is_empty())
    }

    async fn discard_leased(&self, sealed: Sealed) -> Result<u64, StoreError> {
        let segment = Segment::of(sealed);
        if self.count_sent(segment).await? != Some(sealed.messages) {
            return Ok(0);
        }
        self.keep_aside(segment).await?;
        let (begun, mut users) = (Instant::now(), Users::default());
        while begun.elapsed() < TRYING {
            if let Some(name) = self.long_user_of(segment, &mut users).await? {
                return Err(busy(&format!("{name} is using them")));
            }
            match &*self.try_discard(sealed).await? {
                "done" => return Ok(sealed.messages),
                "busy" => sleep(jitter(PAUSE)).await,
                // Something that was set aside was being changed when it was to be copied, or another process was
                // faster.
                _ => return Ok(0),
            }
        }
        Err(busy("others use them again and again"))
    }

    async fn try_discard(&self, sealed: Sealed) -> Result<String, StoreError> {
        let wait_ms = millis(TRY);
        let params = [(&sealed.place as _, Type::INT8), (&wait_ms as _, Type::INT8)];
        let sql = "select tidegate.discard($1, $2) as outcome";
        let rows = self.pool.call(DISCARD, sql, &params).await?;
        let outcome = rows.first().map(|row| get(DISCARD, row, "outcome")).transpose()?;
        Ok(outcome.unwrap_or_default())
    }

    /// Copies what was set aside out of a segment.
    async fn keep_aside(&self, segment: Segment) -> Result<(), StoreError> {
        let mut after = Some(0_i64);
        while let Some(last) = after {
            let params = [
                (&segment.0 as _, Type::INT2),
                (&last as _, Type::INT8),
                (&COPIED as _, Type::INT8),
            ];
            let sql = "select tidegate.keep_aside($1, $2, $3) as last";
            let rows = self.pool.call(DISCARD, sql, &params).await?;
            after = rows.first().map(|row| get(DISCARD, row, "last")).transpose()?.flatten();
        }
        Ok(())
    }

    /// Who has used a segment for long.
    async fn long_user_of(
        &self,
        segment: Segment,
        users: &mut Users,
    ) -> Result<Option<String>, StoreError> {
        let sql = include_str!("../sql/outbox/discard_holder.sql");
        let mut now = Vec::new();
        for row in self.pool.query(DISCARD, sql, &[(&segment.0, Type::INT2)]).await? {
            now.push(User {
                transaction: get(DISCARD, &row, "transaction")?,
                name: get(DISCARD, &row, "name")?,
                is_long: get(DISCARD, &row, "is_long")?,
            });
        }
        Ok(users.see(now, Instant::now()))
    }
}

/// A transaction that uses a segment.
struct User {
    transaction: String,
    name: String,
    /// Nothing if that is hidden from the role of this process, as it is without `pg_read_all_stats`.
    is_long: Option<bool>,
}

/// Transactions that use a segment, and when each was seen for the first time.
#[derive(Default)]
struct Users(HashMap<String, Instant>);

impl Users {
    /// Sees who uses it now. Returns the name of one who has done so for long.
    fn see(&mut self, users: Vec<User>, now: Instant) -> Option<String> {
        let before = std::mem::take(&mut self.0);
        let mut long = None;
        for User { transaction, name, is_long } in users {
            let since = before.get(&transaction).copied().unwrap_or(now);
            if is_long.unwrap_or(false) || now - since >= LONG {
                long = long.or(Some(name));
            }
            self.0.insert(transaction, since);
        }
        long
    }
}

/// Nothing is wrong: it will be possible later.
fn busy(why: &str) -> StoreError {
    let message = format!("{why}: they stay until it is done");
    StoreError::new(Kind::Other, Class::Transient, DISCARD, message)
}
