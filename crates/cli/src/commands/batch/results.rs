//! `tidegate batch results`

use super::stored::{Entry, Stored};
use crate::{exit::Exit, store};
use anyhow::{Result, bail};
use serde::Serialize;
use serde_json::value::RawValue;
use std::io::{self, BufWriter, Write};
use tidegate::{BatchId, OpenStore};

#[derive(Serialize)]
struct Line<'a> {
    index: u64,
    result: &'a RawValue,
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
