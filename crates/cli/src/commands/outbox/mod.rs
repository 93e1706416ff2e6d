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
    args::outbox::{OutboxArgs, OutboxCommand},
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
    if removes && !store.outbox_capabilities().retention {
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

/// The message that was named: by its id, or by the name that sinks know it by, which ends with its id where the store
/// made it. A number is believed.
async fn find(store: &dyn OutboxStore, typed: &MessageId) -> Result<MessageId> {
    if typed.as_number().is_some() || store.message(typed.clone()).await?.is_some() {
        return Ok(typed.clone());
    }
    let name = typed.to_string();
    let last = name.rsplit_once('-').and_then(|(_, last)| last.parse::<MessageId>().ok());
    if let Some(id) = last
        && store.message(id.clone()).await?.is_some_and(|stored| stored.message.name == name)
    {
        return Ok(id);
    }
    bail!("no message is called `{name}`: write the id that `tidegate outbox list` shows")
}
