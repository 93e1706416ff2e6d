//! `tidegate batch show`

use crate::{
    app::App,
    exit::Exit,
    out,
    show::{self, failures, number, status},
    store,
};
use anyhow::Result;
use serde_json::{Value, json};
use tidegate::{
    Aggregates, Batch, BatchId, OpenStore,
    inspect::{BatchStatus, Progress},
};

/// Shows where a batch stands.
pub async fn run(app: &App, store: &OpenStore, id: BatchId) -> Result<Exit> {
    show(app, store, &store::status(store, id).await?).await?;
    Ok(Exit::Done)
}

/// Prints all that is known about a batch.
pub async fn show(app: &App, store: &OpenStore, status: &BatchStatus) -> Result<()> {
    let id = status.batch.id;
    let aggregates = store.aggregates(id).await?;
    let failed = match status.progress {
        Progress { dead: 0, retrying: 0, .. } => Vec::new(),
        _ => failures::read(store, id, None).await?,
    };
    match app.json {
        true => out::json(&as_json(status, &aggregates, &failed, store::kind(store)))?,
        false => {
            let workload = store::workload(store, &status.batch).await?;
            out::data(&as_text(status, &workload, &aggregates, &failed))?;
        }
    }
    Ok(())
}

fn as_json(
    status: &BatchStatus,
    aggregates: &Aggregates,
    failed: &[failures::Failures],
    kind: &str,
) -> Value {
    let more = json!({
        "digest": aggregates.digest.to_string(),
        "aggregates": aggregates.summary(),
        "exceptions": failed,
        "store": kind,
    });
    status::json(status, more)
}

fn as_text(
    status: &BatchStatus,
    workload: &str,
    aggregates: &Aggregates,
    failed: &[failures::Failures],
) -> String {
    let batch = &status.batch;
    let mut text = format!(
        "{}\n  {}\n  {}\n  {}\n  {}\n  digest {}\n",
        out::strong(&format!("batch {} of {workload}", batch.id)),
        status::state(status.state),
        status::progress(&status.progress, batch.runs),
        status::timing(status),
        settings(batch),
        aggregates.digest,
    );
    let shown = show::aggregates(aggregates, out::width());
    if !shown.is_empty() {
        text += &format!("\n{shown}");
    }
    if !failed.is_empty() {
        let listed =
            failures::text(batch.id, failed, status.progress.dead + status.progress.retrying);
        text += &format!("\n{}\n{listed}", out::strong("exceptions"));
    }
    text
}

fn settings(batch: &Batch) -> String {
    let hash = batch.snapshot.to_string();
    format!(
        "seed {}, snapshot {}, keep {}, {} attempts, time-out {}",
        batch.seed,
        &hash[..12],
        batch.keep,
        batch.retry.max_attempts,
        batch.timeout.map_or("none".to_owned(), number::span),
    )
}
