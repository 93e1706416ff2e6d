//! `tidegate submit`: a batch for workers elsewhere.

use super::{finish::exec_flag, spec};
use crate::{
    app::App,
    args::BatchFlags,
    exit::Exit,
    out,
    show::{number, status},
    store,
};
use anyhow::Result;
use serde_json::json;

/// Submits a batch and prints its id.
pub async fn run(app: &App, flags: BatchFlags) -> Result<Exit> {
    let workloads = spec::registry(&flags.exec)?;
    let batch = spec::check(app, &flags, &workloads)?;
    let store = app.open_or_create().await?;
    let batch = store.submit(batch).await?;
    if app.json {
        let status = store::status(&store, batch.id).await?;
        out::json(&status::json(&status, json!({ "store": store::kind(&store) })))?;
    } else {
        out::data(&format!("{}\n", batch.id))?;
    }
    app.say(&format!(
        "submitted batch {}: {} of {}; work on it with `tidegate worker{}{}`",
        batch.id,
        number::runs(batch.runs),
        batch.workload,
        app.address.flag(),
        exec_flag(&batch.workload)
    ));
    Ok(Exit::Done)
}
