//! `tidegate batch results`

use super::stored::{Entry, Stored};
use crate::{exit::Exit, store};
use anyhow::{Result, bail};
use serde::Serialize;
use serde_json::value::RawValue;
use std::io::{self, BufWriter, Write};
use tidegate::{
    BatchId, Exception, ExceptionState, OpenStore, inspect::ExceptionQuery, limits::MAX_LISTED,
};

#[derive(Serialize)]
struct Line<'a> {
    index: u64,
    result: &'a RawValue,
}

#[derive(Serialize)]
struct Dead {
    index: u64,
    attempts: u32,
    reason: String,
}

/// Prints stored results, one line each.
pub async fn run(store: &OpenStore, id: BatchId, from: u64, limit: Option<u64>) -> Result<Exit> {
    let runs = store::status(store, id).await?.batch.runs;
    if from >= runs {
        bail!("batch {id} has the runs 0 to {}; there is no run {from}", runs - 1);
    }
    let mut left = limit.unwrap_or(u64::MAX);
    let mut stored = Stored::new(store, id, from);
    let mut out = BufWriter::new(io::stdout());
    while left > 0 {
        let entries = stored.next().await?;
        if entries.is_empty() {
            break;
        }
        left = print(&mut out, &entries, left)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// Prints the dead runs, one line each.
pub async fn dead(store: &OpenStore, id: BatchId, from: u64, limit: Option<u64>) -> Result<Exit> {
    store::status(store, id).await?;
    let mut left = limit.unwrap_or(u64::MAX);
    let state = Some(ExceptionState::Dead);
    let mut query = ExceptionQuery { batch: id, state, from, limit: MAX_LISTED };
    let mut out = BufWriter::new(io::stdout());
    while left > 0 {
        query.limit = MAX_LISTED.min(usize::try_from(left).unwrap_or(MAX_LISTED));
        let exceptions = store.exceptions(query.clone()).await?;
        let Some(last) = exceptions.last() else { break };
        query.from = last.index + 1;
        left -= exceptions.len() as u64;
        for Exception { index, attempts, reason, .. } in exceptions {
            serde_json::to_writer(&mut out, &Dead { index, attempts, reason })?;
            out.write_all(b"\n")?;
        }
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn print(out: &mut impl Write, entries: &[Entry], mut left: u64) -> io::Result<u64> {
    for (index, result) in entries {
        if left == 0 {
            break;
        }
        serde_json::to_writer(&mut *out, &Line { index: *index, result })?;
        out.write_all(b"\n")?;
        left -= 1;
    }
    Ok(left)
}
