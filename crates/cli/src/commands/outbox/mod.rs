//! `tidegate outbox …`

mod archive;
mod audited;
mod dropping;
mod list;
mod show;
pub mod status;
mod steer;

use crate::{
    app::App,
    args::outbox::{Named, OutboxArgs, OutboxCommand, unknown},
    exit::Exit,
    outbox::open,
};
use anyhow::{Result, bail};
use tidegate::{MessageId, OutboxStore};

/// Looks at an outbox, or steers it.
pub async fn run(app: &App, args: OutboxArgs) -> Result<Exit> {
    let opened = open(app, args.table.preset).await?;
    let store = &*opened.store;
    let removes =
        matches!(args.command, OutboxCommand::Archive { .. } | OutboxCommand::Purge { .. });
    if removes && opened.adopted.is_some() {
        bail!(
            "{} is its application's: what was sent is removed there, not by Tidegate",
            opened.name
        );
    }
    match args.command {
        OutboxCommand::Status => status::run(app, store).await,
        OutboxCommand::Dead => list::dead(app, store).await,
        OutboxCommand::List { state, which, limit } => {
            list::run(app, store, state, which, limit).await
        }
        OutboxCommand::Show { id } => show::run(app, store, find(store, &id).await?).await,
        OutboxCommand::Retry(args) => steer::retry(app, store, args).await,
        OutboxCommand::Drop(args) => dropping::run(app, store, args).await,
        OutboxCommand::Audit { limit } => steer::audit(app, store, limit).await,
        OutboxCommand::Limit { most } => steer::limit(app, store, &most).await,
        OutboxCommand::Archive { directory, older_than } => {
            archive::run(app, store, &directory, older_than.0).await
        }
        OutboxCommand::Purge { older_than } => archive::purge(app, store, older_than.0).await,
    }
}

/// The message that was named. A number is believed; a name must be its own.
async fn find(store: &dyn OutboxStore, named: &Named) -> Result<MessageId> {
    if let Some(name) = &named.name
        && store.message(named.id).await?.is_none_or(|stored| stored.message.name != *name)
    {
        bail!(unknown(name));
    }
    Ok(named.id)
}
