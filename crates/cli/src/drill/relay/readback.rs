//! The messages that the surviving server has, in the order of its ids.

use crate::{bench::connect, drill::stage::Stage};
use anyhow::{Context, Result};
use rusqlite::Connection;
use std::path::Path;
use tidegate::sqlite_file;
use tidegate_drill::recorder::Body;

const PAGE: i64 = 20_000;

pub async fn stored(stage: &Stage) -> Result<Vec<u32>> {
    match sqlite_file(&stage.url) {
        Some(path) => on_sqlite(path),
        None => on_postgres(&stage.url).await,
    }
}

async fn on_postgres(url: &str) -> Result<Vec<u32>> {
    let client = connect(url).await?;
    let (mut after, mut numbers) = (0_i64, Vec::new());
    loop {
        let rows = client.query(include_str!("postgres.sql"), &[&after, &PAGE]).await?;
        let Some(last) = rows.last() else { return Ok(numbers) };
        after = last.get(0);
        for row in &rows {
            numbers.push(number(row.get(1))?);
        }
    }
}

fn on_sqlite(path: &Path) -> Result<Vec<u32>> {
    let connection = Connection::open(path)?;
    let mut statement = connection.prepare(include_str!("sqlite.sql"))?;
    let mut rows = statement.query([])?;
    let mut numbers = Vec::new();
    while let Some(row) = rows.next()? {
        let payload: Vec<u8> = row.get(0)?;
        numbers.push(number(&payload)?);
    }
    Ok(numbers)
}

fn number(payload: &[u8]) -> Result<u32> {
    let Body { n } = serde_json::from_slice(payload).context("a message is not the drill's own")?;
    Ok(n)
}
