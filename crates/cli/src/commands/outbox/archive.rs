//! `tidegate outbox archive` and `purge`

use crate::{app::App, exit::Exit, out, show::number::count};
use anyhow::{Context, Result};
use serde_json::json;
use std::{path::Path, time::Duration};
use tidegate::{OutboxStore, archive};

/// Writes sent messages to files, and removes them.
pub async fn run(
    app: &App,
    store: &dyn OutboxStore,
    directory: &Path,
    age: Duration,
) -> Result<Exit> {
    let about = || format!("cannot archive to `{}`", directory.display());
    let archived = archive::archive(store, directory, age).await.with_context(about)?;
    if app.json {
        let files: Vec<_> = archived.files.iter().map(|path| path.display().to_string()).collect();
        out::json(&json!({ "messages": archived.messages, "files": files }))?;
    }
    app.say(&match archived.files.as_slice() {
        [] => "nothing to archive".to_owned(),
        [file] => format!("{} messages moved to {}", count(archived.messages), file.display()),
        files => format!(
            "{} messages moved to {} files in {}",
            count(archived.messages),
            files.len(),
            directory.display()
        ),
    });
    Ok(Exit::Done)
}

/// Removes sent messages.
pub async fn purge(app: &App, store: &dyn OutboxStore, age: Duration) -> Result<Exit> {
    let removed = archive::purge(store, age).await?;
    if app.json {
        out::json(&json!({ "removed": removed }))?;
    }
    app.say(&format!("removed {} messages that were sent", count(removed)));
    Ok(Exit::Done)
}
