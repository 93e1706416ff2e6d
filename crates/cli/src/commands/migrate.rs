//! `tidegate migrate`: the schema of a store.

use crate::{app::App, args::MigrateArgs, exit::Exit, out};
use anyhow::{Context, Result};
use serde_json::json;
use tidegate::Access;

/// Applies what is missing, or prints all of it.
pub async fn run(app: &App, args: MigrateArgs) -> Result<Exit> {
    if args.print {
        out::data(&script(app).await?)?;
        return Ok(Exit::Done);
    }
    let store = app.address.open(Access::Unchecked).await?;
    let applied = store.migrate().await?;
    if app.json {
        out::json(&json!({ "applied": applied }))?;
    }
    app.say(&match applied.is_empty() {
        true => "the schema is up to date".to_owned(),
        false => format!("applied {}", applied.join(", ")),
    });
    Ok(Exit::Done)
}

/// The migrations of this kind of store. Printing creates nothing: a store that is not there yet is
/// asked for its script elsewhere.
async fn script(app: &App) -> Result<String> {
    let missing = app.address.file().is_some_and(|file| !file.exists());
    if !missing {
        return Ok(app.address.open(Access::Unchecked).await?.script());
    }
    let directory = tempfile::tempdir().context("cannot create a temporary directory")?;
    let elsewhere = format!("sqlite:{}", directory.path().join("empty.db").display());
    Ok(tidegate::open(&elsewhere, Access::Unchecked).await?.script())
}
