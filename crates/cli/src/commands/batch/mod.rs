//! `tidegate batch`: looking at batches and steering them.

mod list;
mod replay;
mod results;
mod show;
mod steer;
pub mod stored;
mod watch;

use crate::{app::App, args::BatchCommand, exit::Exit};
use anyhow::Result;
use tidegate::Access;

/// Carries out one of the subcommands.
pub async fn run(app: &App, command: BatchCommand) -> Result<Exit> {
    let store = app.address.open(Access::Existing).await?;
    match command {
        BatchCommand::List { state, limit } => list::run(app, &store, state, limit).await,
        BatchCommand::Show { id } => show::run(app, &store, id).await,
        BatchCommand::Watch { id } => watch::run(app, &store, id).await,
        BatchCommand::Results { id, from, limit, dead: false } => {
            results::run(&store, id, from, limit).await
        }
        BatchCommand::Results { id, from, limit, dead: true } => {
            results::dead(&store, id, from, limit).await
        }
        BatchCommand::Replay { run, exec } => replay::run(app, &store, &run, exec).await,
        BatchCommand::Cancel { id } => steer::cancel(app, &store, id).await,
        BatchCommand::Retry { id } => steer::retry(app, &store, id).await,
    }
}
