//! Sinks that take nothing at the moment. An adopted table has notes of its own.

use crate::{
    decode::{get, millis},
    pool::Pool,
};
use std::time::Duration;
use tidegate_core::{
    StoreError,
    outbox::{SinkTrouble, TroubleNote},
};
use tokio_postgres::{Row, types::Type};

/// The store's own outbox.
pub(crate) const OWN: &str = "";

const READ: &str = "inspect outbox";

pub(crate) async fn note(pool: &Pool, outbox: &str, note: &TroubleNote) -> Result<(), StoreError> {
    let sinks: Vec<&str> = note.sinks.iter().map(|it| it.sink.as_str()).collect();
    let reasons: Vec<&str> = note.sinks.iter().map(|it| it.reason.as_str()).collect();
    let lasts: Vec<i64> = note.sinks.iter().map(|it| millis(it.lasts)).collect();
    let params = [
        (&outbox as _, Type::TEXT),
        (&note.relay.0 as _, Type::TEXT),
        (&sinks as _, Type::TEXT_ARRAY),
        (&reasons as _, Type::TEXT_ARRAY),
        (&millis(note.valid) as _, Type::INT8),
        (&lasts as _, Type::INT8_ARRAY),
    ];
    let sql = include_str!("../sql/outbox/trouble_note.sql");
    pool.query(pool.leased("note sinks"), sql, &params).await?;
    Ok(())
}

pub(crate) async fn read(pool: &Pool, outbox: &str) -> Result<Vec<SinkTrouble>, StoreError> {
    let sql = include_str!("../sql/outbox/trouble.sql");
    let rows = pool.query(READ, sql, &[(&outbox as _, Type::TEXT)]).await?;
    rows.iter().map(trouble).collect()
}

fn trouble(row: &Row) -> Result<SinkTrouble, StoreError> {
    let number = |column| get::<i64>(READ, row, column).map(|number| number.max(0).unsigned_abs());
    Ok(SinkTrouble {
        sink: get(READ, row, "sink")?,
        reason: get(READ, row, "reason")?,
        lasts: Duration::from_millis(number("lasts_ms")?),
        relays: number("relays")?,
    })
}
