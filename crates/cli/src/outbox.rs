//! Which outbox: the store's own, or a table that was there before.

use crate::{app::App, store};
use anyhow::{Result, bail};
use std::sync::Arc;
use tidegate::{
    Access, OutboxStore,
    adopted::{Adopted, Mapping, Preset},
};

/// An outbox that is open.
pub struct Opened {
    pub store: Arc<dyn OutboxStore>,
    /// For people.
    pub name: String,
    /// If it is a table that was there before.
    pub adopted: Option<Arc<Adopted>>,
}

/// Opens the outbox that flags and settings name. A store that is not there is refused.
pub async fn open(app: &App, preset: Option<Preset>) -> Result<Opened> {
    let store = app.address.open(Access::Existing).await?;
    Ok(match table(app, preset).await? {
        Some(adopted) => {
            let name = format!("the table {}", adopted.table());
            Opened { store: adopted.clone(), name, adopted: Some(adopted) }
        }
        None => {
            let name = store::kind(&store).to_owned();
            Opened { store: store.outbox_store(), name, adopted: None }
        }
    })
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
    if !app.address.url().starts_with("postgres") {
        bail!("a table that was there before is read on PostgreSQL: name the server with --store");
    }
    Ok(Some(Arc::new(Adopted::open(app.address.url(), mapping).await?)))
}
