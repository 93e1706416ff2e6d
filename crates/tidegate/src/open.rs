//! Stores by their address.

use crate::open_outbox::{dynamodb_script, is_dynamodb, no_batches};
use std::{
    ops::Deref,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};
use tidegate_core::{
    Class, Kind, Memory, Migrate, OutboxStore, Source, Store, StoreError, migrate::Schema,
};
use tidegate_postgres::{Postgres, Protection, is_address as is_postgres};
use tidegate_sqlite::{Open, Sqlite};

/// What may happen to a store that has no schema yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is made, with its file if need be.
    Create,
    /// It is refused.
    Existing,
    /// It is opened as it is: only migrating makes sense then.
    Unchecked,
}

/// An open store of any kind.
#[derive(Clone)]
pub struct OpenStore {
    kind: StoreKind,
    created: bool,
}

#[derive(Clone)]
enum StoreKind {
    Memory(Arc<Memory>),
    Sqlite(Arc<Sqlite>),
    Postgres(Arc<Postgres>),
}

impl OpenStore {
    /// As the engine sees it.
    pub fn source(&self) -> Arc<dyn Source> {
        match &self.kind {
            StoreKind::Memory(store) => store.clone(),
            StoreKind::Sqlite(store) => store.clone(),
            StoreKind::Postgres(store) => store.clone(),
        }
    }

    /// As a relay sees it.
    pub fn outbox_store(&self) -> Arc<dyn OutboxStore> {
        match &self.kind {
            StoreKind::Memory(store) => store.clone(),
            StoreKind::Sqlite(store) => store.clone(),
            StoreKind::Postgres(store) => store.clone(),
        }
    }

    /// How its connections are protected against others on the way; `None` if it has none.
    pub fn protection(&self) -> Option<Protection> {
        match &self.kind {
            StoreKind::Memory(_) | StoreKind::Sqlite(_) => None,
            StoreKind::Postgres(store) => store.protection(),
        }
    }

    /// Whether opening it made its schema: it held nothing before.
    pub fn is_new(&self) -> bool {
        self.created
    }

    /// How many SQL statements were executed through this handle so far.
    pub fn statements(&self) -> u64 {
        match &self.kind {
            StoreKind::Memory(_) => 0,
            StoreKind::Sqlite(store) => store.statements(),
            StoreKind::Postgres(store) => store.statements(),
        }
    }
}

impl Deref for OpenStore {
    type Target = dyn Store;

    fn deref(&self) -> &Self::Target {
        match &self.kind {
            StoreKind::Memory(store) => &**store,
            StoreKind::Sqlite(store) => &**store,
            StoreKind::Postgres(store) => &**store,
        }
    }
}

/// Opens a store: `memory:`, `sqlite:FILE`, `postgres://…`, or `host=…` as libpq has it.
pub async fn open(url: &str, access: Access) -> Result<OpenStore, StoreError> {
    let kind = match url.split_once(':') {
        Some(("memory", "")) => StoreKind::Memory(Arc::new(Memory::new(since_1970))),
        Some(("memory", _)) => return Err(refuse("memory: takes no name: write --store memory:")),
        Some(("sqlite", _)) => StoreKind::Sqlite(Arc::new(open_sqlite(url, access)?)),
        _ if is_postgres(url) => StoreKind::Postgres(Arc::new(Postgres::connect(url).await?)),
        _ if is_dynamodb(url) => return Err(no_batches(url)),
        _ => return Err(bad_address(url)),
    };
    let mut store = OpenStore { kind, created: false };
    store.created = ready(&*store, access).await?;
    Ok(store)
}

/// The file of an SQLite store, by the store's address; `None` for other stores.
pub fn sqlite_file(url: &str) -> Option<&Path> {
    let path = url.strip_prefix("sqlite:")?;
    Some(Path::new(path.strip_prefix("//").unwrap_or(path)))
}

/// All migrations of the kind of store that is at an address, as a script, for people who apply them
/// with a tool of their own. Opens nothing.
pub fn script(url: &str) -> Result<String, StoreError> {
    match url.split_once(':') {
        Some(("memory", _)) => Err(refuse("a memory: store has no schema")),
        Some(("sqlite", _)) => Ok(tidegate_sqlite::script()),
        _ if is_postgres(url) => Ok(tidegate_postgres::script()),
        _ if is_dynamodb(url) => dynamodb_script(url),
        _ => Err(bad_address(url)),
    }
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

fn open_sqlite(url: &str, access: Access) -> Result<Sqlite, StoreError> {
    let path = sqlite_file(url).unwrap_or(Path::new(""));
    if path.as_os_str().is_empty() {
        return Err(refuse("sqlite: names no file: write sqlite:FILE"));
    }
    // Elsewhere settings stand behind a question mark. Here they would become part of the file's name.
    if path.to_string_lossy().contains('?') && !path.exists() {
        return Err(refuse("a sqlite: address takes no settings: remove the `?` and what follows"));
    }
    let how = if access == Access::Existing { Open::Existing } else { Open::Create };
    Sqlite::open(path, how)
}

/// Sees to the schema of a store, or of what is remembered about an adopted table, as `access` says. Returns
/// whether it was made just now.
pub async fn ready(store: &(impl Migrate + ?Sized), access: Access) -> Result<bool, StoreError> {
    if access == Access::Unchecked {
        return Ok(false);
    }
    let refuse = |message: String| {
        Err(StoreError::new(Kind::SchemaOutdated, Class::Permanent, "open the store", message))
    };
    match store.schema().await? {
        Schema::Current => Ok(false),
        Schema::Missing if access == Access::Create => {
            store.migrate().await.map(|applied| !applied.is_empty())
        }
        Schema::Missing => refuse(
            "there is no store here: it has no schema yet: run `tidegate migrate`, or check the address"
                .to_owned(),
        ),
        Schema::Outdated { found, needed } => refuse(format!(
            "its schema has version {found}, this binary needs {needed}: run `tidegate migrate`"
        )),
    }
}

pub(crate) fn refuse(message: impl Into<String>) -> StoreError {
    StoreError::new(Kind::BadAddress, Class::Permanent, "open the store", message)
}

fn bad_address(url: &str) -> StoreError {
    // Only the scheme is repeated: the rest may hold a password.
    let scheme = url.split(':').next().unwrap_or_default();
    refuse(format!(
        "`{scheme}` is no store: use memory:, sqlite:FILE, postgres://USER@HOST/DATABASE or dynamodb://TABLE"
    ))
}
