//! Which outbox: the store's own, or a table that was there before.

use crate::app::App;
use anyhow::{Result, bail};
use std::sync::Arc;
use tidegate::{
    Access, OpenOutbox, OutboxStore, Protection,
    adopted::{Adopted, Mapping, Preset},
};

/// An outbox that is open.
pub struct Opened {
    pub store: Arc<dyn OutboxStore>,
    /// For people.
    pub name: String,
    /// If it is a table that was there before.
    pub adopted: Option<Arc<Adopted>>,
    /// If it is the store's own.
    pub own: Option<OpenOutbox>,
    /// How the connection to it is protected, if it has one.
    pub protection: Option<Protection>,
}

impl Opened {
    /// What people should know when a relay starts, a sentence each.
    pub fn remarks(&self) -> Vec<String> {
        let own = self.own.iter().flat_map(OpenOutbox::remarks);
        self.adopted.iter().flat_map(|table| table.remarks()).chain(own).collect()
    }
}

/// Opens the outbox that flags and settings name. A store that is not there is refused. Beside the table of an
/// application, the database need not be fit for a store.
pub async fn open(app: &App, preset: Option<Preset>) -> Result<Opened> {
    if let Some(adopted) = table(app, preset).await? {
        tidegate::ready(&*adopted, Access::Existing).await?;
        let (name, protection) = (format!("the table {}", adopted.table()), adopted.protection());
        let (store, own) = (adopted.clone(), None);
        return Ok(Opened { store, name, adopted: Some(adopted), own, protection });
    }
    let own = app.address.open_outbox(Access::Existing).await?;
    let (store, protection) = (own.outbox_store(), own.protection());
    let name = store.outbox_capabilities().name.to_owned();
    Ok(Opened { store, name, adopted: None, own: Some(own), protection })
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
    if app.address.is_dynamodb() {
        bail!(
            "a dynamodb: store is a table of Brighter as it is, and nothing about it can be declared: leave --preset \
             out and, in tidegate.toml, all of [outbox] but `keep`; a minimum age is a part of the address, as in \
             dynamodb://TABLE?min_age=5s"
        );
    }
    if !tidegate::is_postgres(app.address.url()) {
        bail!("a table that was there before is read on PostgreSQL: name the server with --store");
    }
    Ok(Some(Arc::new(Adopted::open(app.address.url(), mapping).await?)))
}
