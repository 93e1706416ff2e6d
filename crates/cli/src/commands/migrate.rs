//! `tidegate migrate`: the schema of a store.

use crate::{app::App, args::MigrateArgs, exit::Exit, out, outbox};
use anyhow::Result;
use serde_json::json;
use tidegate::{Access, Migrate};

/// Applies what is missing, or prints all of it.
pub async fn run(app: &App, args: MigrateArgs) -> Result<Exit> {
    if args.print {
        out::data(&tidegate::script(app.address.url())?)?;
        return Ok(Exit::Done);
    }
    let applied = match outbox::table(app, args.table.preset).await? {
        Some(table) => table.migrate().await?,
        None => app.address.open(Access::Unchecked).await?.migrate().await?,
    };
    if app.json {
        out::json(&json!({ "applied": applied }))?;
    }
    app.say(&match applied.is_empty() {
        true => "the schema is up to date".to_owned(),
        false => format!("applied {}", applied.join(", ")),
    });
    Ok(Exit::Done)
}
