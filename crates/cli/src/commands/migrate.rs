//! `tidegate migrate`: the schema of a store.

use crate::{app::App, args::MigrateArgs, exit::Exit, out, outbox};
use anyhow::Result;
use serde_json::json;
use tidegate::{Access, Migrate, migrate::Schema};

/// Applies what is missing, or prints it.
pub async fn run(app: &App, args: MigrateArgs) -> Result<Exit> {
    if args.print {
        out::data(&tidegate::script_of_missing(app.address.url()).await?)?;
        return Ok(Exit::Done);
    }
    let (is_new, applied) = match outbox::table(app, args.table.preset).await? {
        Some(table) => migrate(&*table).await?,
        None => migrate(app.address.open_outbox(Access::Unchecked).await?.schema()).await?,
    };
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

/// Applies what is missing, and returns it. Says whether there was nothing.
async fn migrate(store: &(impl Migrate + ?Sized)) -> Result<(bool, Vec<&'static str>)> {
    let is_new = store.schema().await? == Schema::Missing;
    Ok((is_new, store.migrate().await?))
}
