//! Which store, and how to open it.

use crate::suggest::did_you_mean;
use anyhow::{Result, bail};
use std::path::PathBuf;
use tidegate::{
    Access, Batch, BatchId, OpenOutbox, OpenStore,
    inspect::{BatchQuery, BatchStatus},
    load,
    sinks::protected,
    sqlite_file,
};

/// Needs no server and no set-up.
const DEFAULT: &str = "sqlite:tidegate.db";
const SCHEMES: [&str; 5] = ["memory", "sqlite", "postgres", "postgresql", "dynamodb"];

/// The address of a store.
#[derive(Debug)]
pub struct Address(String);

impl Address {
    /// The one that was asked for, or the default. Refuses what leads to no kind of store.
    pub fn new(url: Option<String>) -> Result<Self> {
        let url = url.unwrap_or_else(|| DEFAULT.to_owned());
        if url.trim().is_empty() {
            bail!(
                "the address of the store is empty: is a variable unset? Name a store with --store, \
                 TIDEGATE_STORE or `store` in tidegate.toml, or leave all of them out for {DEFAULT}"
            );
        }
        let scheme = url.split(':').next().unwrap_or_default();
        if url == "memory" {
            bail!("`memory` is no store; did you mean `memory:`?");
        }
        if tidegate::is_postgres(&url) {
            return Ok(Self(url));
        }
        if url.contains('=') && !url.contains(':') {
            // Perhaps settings as libpq has them, with a password.
            bail!(
                "that is no store: write postgres://USER@HOST/DATABASE, or host=HOST dbname=DATABASE"
            );
        }
        if !url.contains(':') {
            bail!("`{url}` is no store: write sqlite:{url} for a file, or postgres://…");
        }
        // Only the scheme is repeated: the rest may hold a password.
        if !SCHEMES.contains(&scheme) {
            bail!(
                "`{scheme}:` is no kind of store{} (memory:, sqlite:FILE, postgres://…, dynamodb://TABLE)",
                did_you_mean(scheme, SCHEMES)
            );
        }
        tidegate::check_dynamodb(&url)?;
        Ok(Self(url))
    }

    /// Whether it is a table in DynamoDB: an outbox, and nothing else.
    pub fn is_dynamodb(&self) -> bool {
        tidegate::is_dynamodb(&self.0)
    }

    /// As it was given, password and all: not for people.
    pub fn url(&self) -> &str {
        &self.0
    }

    /// The files that the store consists of, if it is in files; some may not exist at the moment.
    pub fn files(&self) -> Vec<PathBuf> {
        let Some(file) = sqlite_file(&self.0) else { return Vec::new() };
        let file = protected::resolve(file);
        let beside = |end: &str| {
            let mut name = file.clone().into_os_string();
            name.push(end);
            PathBuf::from(name)
        };
        ["", "-wal", "-shm", "-journal"].map(beside).into()
    }

    /// The files that the address names: certificates and keys.
    pub fn credentials(&self) -> Vec<PathBuf> {
        tidegate::postgres_files(&self.0)
    }

    /// Whether it is the one that nobody has to name.
    pub fn is_default(&self) -> bool {
        self.0 == DEFAULT
    }

    /// Opens the store for a command that submits and works in one process.
    pub async fn open_here(&self) -> Result<OpenStore> {
        Ok(tidegate::open(&self.0, Access::Create).await?)
    }

    /// Opens the store for a command that shares it with other processes.
    pub async fn open(&self, access: Access) -> Result<OpenStore> {
        self.refuse_memory()?;
        Ok(tidegate::open(&self.0, access).await?)
    }

    /// The same for a command that needs an outbox only.
    pub async fn open_outbox(&self, access: Access) -> Result<OpenOutbox> {
        self.refuse_memory()?;
        Ok(tidegate::open_outbox(&self.0, access).await?)
    }

    fn refuse_memory(&self) -> Result<()> {
        if self.0.starts_with("memory:") {
            bail!(
                "a memory: store ends with its process and only `tidegate run` can use it: \
                 name another one with --store"
            );
        }
        Ok(())
    }

    /// What to say of a store that was made just now.
    pub fn created(&self) -> String {
        match sqlite_file(&self.0) {
            Some(file) => format!("created the store {}", file.display()),
            None if self.is_dynamodb() => format!("made what was missing for {}", self.0),
            None => format!("created the schema tidegate in {}", without_password(&self.0)),
        }
    }

    /// The flag that leads another process here: none for the default, and without a password.
    pub fn flag(&self) -> String {
        if self.is_default() {
            return String::new();
        }
        let shown = without_password(&self.0);
        let quoted = shlex::try_quote(&shown).map_or_else(|_| shown.clone(), Into::into);
        format!(" --store {quoted}")
    }
}

fn without_password(url: &str) -> String {
    match tidegate::is_postgres(url) {
        true => tidegate::without_password(url),
        false => url.to_owned(),
    }
}

/// One batch and where it stands; an unknown one is an error.
pub async fn status(store: &OpenStore, id: BatchId) -> Result<BatchStatus> {
    let found = store.batches(BatchQuery::one(id)).await?;
    match found.into_iter().next() {
        Some(status) => Ok(status),
        None => bail!("there is no batch {id} in this store; see `tidegate batch list`"),
    }
}

/// The store's kind, for people and for JSON.
pub fn kind(store: &OpenStore) -> &'static str {
    store.capabilities().name
}

/// What a batch does, for people: its workload, or what is loaded where.
pub async fn workload(store: &OpenStore, batch: &Batch) -> Result<String> {
    Ok(match load::about(store, batch).await? {
        Some(load) => format!("load {} to {}", load.file, load.to),
        None => batch.workload.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        Address::new(Some(url.to_owned())).unwrap_err().to_string()
    }

    #[test]
    fn a_typo_is_named_without_the_password() {
        let error = refused("postgre://tide:secret@db/tide");
        assert!(error.contains("`postgre:`") && error.contains("did you mean `postgres`?"));
        assert!(!error.contains("secret"));
        assert!(refused("batches.db").contains("sqlite:batches.db"));
        assert!(refused("memory").contains("did you mean `memory:`?"));
        assert!(!refused("Host=db password=secret").contains("secret"));
    }

    #[test]
    fn an_empty_address_is_not_the_default() {
        for empty in ["", " ", "\t\n"] {
            assert!(refused(empty).contains("is empty: is a variable unset?"), "{empty:?}");
        }
        assert_eq!(Address::new(None).unwrap().url(), DEFAULT);
    }

    #[test]
    fn a_store_in_a_file_has_files_beside_it() {
        let files = |url: &str| Address::new(Some(url.to_owned())).unwrap().files();
        let here = std::env::current_dir().unwrap().canonicalize().unwrap();
        let expected = ["s.db", "s.db-wal", "s.db-shm", "s.db-journal"].map(|name| here.join(name));
        for url in [
            "sqlite:s.db".to_owned(),
            "sqlite:./s.db".to_owned(),
            format!("sqlite://{}/s.db", here.display()),
        ] {
            assert_eq!(files(&url), expected, "{url}");
        }
        assert!(files("postgres://db/tide").is_empty() && files("memory:").is_empty());
    }

    #[test]
    fn hints_show_no_password() {
        let flag = |url: &str| Address::new(Some(url.to_owned())).unwrap().flag();
        assert_eq!(flag("postgres://tide:a@b:c@db/tide"), " --store postgres://tide@db/tide");
        assert_eq!(flag("host=db password=secret user=tide"), " --store 'host=db user=tide'");
        assert_eq!(flag("postgres://db/x?password=secret"), " --store postgres://db/x");
        assert_eq!(flag("sqlite:my runs.db"), " --store 'sqlite:my runs.db'");
        assert_eq!(flag(DEFAULT), "");
    }
}
