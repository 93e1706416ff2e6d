//! `tidegate batch cancel` and `tidegate batch retry`

use crate::{
    app::App,
    commands::finish::exec_flag,
    exit::Exit,
    out,
    show::{number, status},
    store,
};
use anyhow::Result;
use serde_json::json;
use tidegate::{BatchId, OpenStore};

/// Stops a batch for good.
pub async fn cancel(app: &App, store: &OpenStore, id: BatchId) -> Result<Exit> {
    store.cancel(id).await?;
    let status = store::status(store, id).await?;
    if app.json {
        out::json(&json!({ "batch": id, "state": status.state, "progress": status.progress }))?;
    }
    let progress = status::progress(&status.progress, status.batch.runs);
    app.say(&format!("cancelled batch {id}: {progress}"));
    Ok(Exit::Done)
}

/// Makes dead runs due again.
pub async fn retry(app: &App, store: &OpenStore, id: BatchId) -> Result<Exit> {
    let count = store.retry(id).await?;
    if app.json {
        out::json(&json!({ "batch": id, "retried": count }))?;
    }
    let exec = exec_flag(&store::status(store, id).await?.batch.workload);
    let flag = app.address.flag();
    app.say(&match count {
        0 => format!("batch {id} has no dead runs"),
        _ => format!(
            "{} due again; work on batch {id} with `tidegate worker --until-idle{exec}{flag}`",
            match count {
                1 => "1 dead run is".to_owned(),
                _ => format!("{} dead runs are", number::count(count)),
            }
        ),
    });
    Ok(Exit::Done)
}
