//! `tidegate batch list`

use crate::{
    app::App,
    exit::Exit,
    out,
    show::{
        number::{count, percent, span},
        status,
        table::table,
    },
    store,
};
use anyhow::Result;
use serde_json::json;
use tidegate::{
    BatchState, OpenStore,
    inspect::{BatchQuery, BatchStatus},
};

/// Lists batches, newest first.
pub async fn run(
    app: &App,
    store: &OpenStore,
    state: Option<BatchState>,
    limit: usize,
) -> Result<Exit> {
    let batches = store.batches(BatchQuery { state, ..BatchQuery::newest(limit) }).await?;
    if app.json {
        out::json(&batches.iter().map(|found| status::json(found, json!({}))).collect::<Vec<_>>())?;
    } else if batches.is_empty() {
        app.say("no batches");
    } else {
        let headings =
            ["batch", "workload", "state", "runs", "done", "dead", "retrying", "took", "age"];
        let mut rows = Vec::new();
        for status in &batches {
            rows.push(row(status, store::workload(store, &status.batch).await?));
        }
        out::data(&table(headings, 3, rows))?;
    }
    Ok(Exit::Done)
}

fn row(status: &BatchStatus, workload: String) -> [String; 9] {
    let (batch, progress) = (&status.batch, &status.progress);
    [
        batch.id.to_string(),
        workload,
        status::state(status.state).to_owned(),
        count(batch.runs),
        percent(progress.completed + progress.dead, batch.runs),
        count(progress.dead),
        count(progress.retrying),
        status::took(status).map(span).unwrap_or_default(),
        status::ago(status.created_ms),
    ]
}
