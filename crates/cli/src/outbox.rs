//! Which outbox: the store's own, or a table that was there before.

use crate::{app::App, store};
use anyhow::{Result, bail};
use std::sync::Arc;
use tidegate::{
    Access, OutboxStore, Protection,
    adopted::{Adopted, Mapping, Preset},
};

/// An outbox that is open.
pub struct Opened {
    pub store: Arc<dyn OutboxStore>,
    /// For people.
    pub name: String,
    /// If it is a table that was there before.
    pub adopted: Option<Arc<Adopted>>,
    /// How the connection to it is protected, if it has one.
    pub protection: Option<Protection>,
}

/// Opens the outbox that flags and settings name. A store that is not there is refused. Beside the table of an
/// application, the database need not be fit for a store.
pub async fn open(app: &App, preset: Option<Preset>) -> Result<Opened> {
    if let Some(adopted) = table(app, preset).await? {
        tidegate::ready(&*adopted, Access::Existing).await?;
        let (name, protection) = (format!("the table {}", adopted.table()), adopted.protection());
        return Ok(Opened { store: adopted.clone(), name, adopted: Some(adopted), protection });
    }
    let store = app.address.open(Access::Existing).await?;
    let (name, protection) = (store::kind(&store).to_owned(), store.protection());
    Ok(Opened { store: store.outbox_store(), name, adopted: None, protection })
}

/// Opens the table that was there before, if flags or settings name one.
pub async fn table(app: &App, preset: Option<Preset>) -> Result<Option<Arc<Adopted>>> {
    let declared = app.config.outbox.table.clone();
    let mapping = match (preset, declared) {
        (None, None) => return Ok(None),
        (None, Some(mapping)) => mapping,
        (Some(preset), None) => Mapping::of(preset),
        (Some(preset), Some(mapping)) => Mapping { preset: Some(preset), ..mapping },
    };
    if !tidegate::is_postgres(app.address.url()) {
        bail!("a table that was there before is read on PostgreSQL: name the server with --store");
    }
    Ok(Some(Arc::new(Adopted::open(app.address.url(), mapping).await?)))
}
