//! `tidegate migrate`: the schema of a store.

use crate::{app::App, args::MigrateArgs, exit::Exit, out};
use anyhow::Result;
use serde_json::json;
use tidegate::{Access, migrate::Schema};

/// Applies what is missing, or prints all of it.
pub async fn run(app: &App, args: MigrateArgs) -> Result<Exit> {
    if args.print {
        out::data(&tidegate::script(app.address.url())?)?;
        return Ok(Exit::Done);
    }
    let store = app.address.open(Access::Unchecked).await?;
    let is_new = store.schema().await? == Schema::Missing;
    let applied = store.migrate().await?;
    if app.json {
        out::json(&json!({ "applied": applied }))?;
    }
    app.say(&match applied.as_slice() {
        [] => "the schema is up to date".to_owned(),
        applied if is_new => format!("{}: {}", app.address.created(), applied.join(", ")),
        applied => format!("applied {}", applied.join(", ")),
    });
    Ok(Exit::Done)
}
