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
use std::time::{Duration, Instant};
use tidegate::{
    BatchId, OpenStore,
    load::{self, About},
};

/// How often a long retry says how far it is.
const SAY_EVERY: Duration = Duration::from_secs(1);

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
    let count = retry_all(app, store, id).await?;
    if app.json {
        out::json(&json!({ "batch": id, "retried": count }))?;
    }
    let batch = store::status(store, id).await?.batch;
    let (flag, exec) = (app.address.flag(), exec_flag(&batch.workload));
    let (name, how) = match load::about(store, &batch).await? {
        Some(About { file, to, .. }) => {
            ("record", format!("repeat `tidegate load` of {file} to {to}{flag}"))
        }
        None => {
            ("run", format!("work on batch {id} with `tidegate worker --until-idle{exec}{flag}`"))
        }
    };
    app.say(&match count {
        0 => format!("batch {id} has no dead {name}s"),
        1 => format!("1 dead {name} is due again; {how}"),
        _ => format!("{} dead {name}s are due again; {how}", number::count(count)),
    });
    Ok(Exit::Done)
}

/// Page by page, each of which is durable: who stops this and begins anew goes on where it was.
async fn retry_all(app: &App, store: &OpenStore, id: BatchId) -> Result<u64> {
    let mut count = 0;
    let mut from = Some(0);
    let mut said = Instant::now();
    while let Some(next) = from {
        let page = store.retry(id, next).await?;
        count += page.runs;
        from = page.next;
        if from.is_some() && said.elapsed() >= SAY_EVERY {
            said = Instant::now();
            app.say(&format!("{} are due again so far", number::runs(count)));
        }
    }
    Ok(count)
}
