//! Stores by their address.

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
        Some(("sqlite", path)) => StoreKind::Sqlite(Arc::new(open_sqlite(path, access)?)),
        _ if is_postgres(url) => StoreKind::Postgres(Arc::new(Postgres::connect(url).await?)),
        _ => return Err(bad_address(url)),
    };
    let store = OpenStore { kind };
    ready(&*store, access).await?;
    Ok(store)
}

/// All migrations of the kind of store that is at an address, as a script, for people who apply them
/// with a tool of their own. Opens nothing.
pub fn script(url: &str) -> Result<String, StoreError> {
    match url.split_once(':') {
        Some(("memory", _)) => Err(refuse("a memory: store has no schema")),
        Some(("sqlite", _)) => Ok(tidegate_sqlite::script()),
        _ if is_postgres(url) => Ok(tidegate_postgres::script()),
        _ => Err(bad_address(url)),
    }
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

fn open_sqlite(path: &str, access: Access) -> Result<Sqlite, StoreError> {
    let path = Path::new(path.strip_prefix("//").unwrap_or(path));
    let how = if access == Access::Existing { Open::Existing } else { Open::Create };
    Sqlite::open(path, how)
}

/// Sees to the schema of a store, or of what is remembered about an adopted table, as `access` says.
pub async fn ready(store: &(impl Migrate + ?Sized), access: Access) -> Result<(), StoreError> {
    if access == Access::Unchecked {
        return Ok(());
    }
    let refuse = |message: String| {
        Err(StoreError::new(Kind::SchemaOutdated, Class::Permanent, "open the store", message))
    };
    match store.schema().await? {
        Schema::Current => Ok(()),
        Schema::Missing if access == Access::Create => store.migrate().await.map(|_| ()),
        Schema::Missing => refuse("it has no schema yet: run `tidegate migrate`".to_owned()),
        Schema::Outdated { found, needed } => refuse(format!(
            "its schema has version {found}, this binary needs {needed}: run `tidegate migrate`"
        )),
    }
}

fn refuse(message: impl Into<String>) -> StoreError {
    StoreError::new(Kind::BadAddress, Class::Permanent, "open the store", message)
}

fn bad_address(url: &str) -> StoreError {
    // Only the scheme is repeated: the rest may hold a password.
    let scheme = url.split(':').next().unwrap_or_default();
    refuse(format!(
        "`{scheme}` is no store: use memory:, sqlite:FILE or postgres://USER@HOST/DATABASE"
    ))
}
