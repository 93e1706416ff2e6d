//! Outboxes by their address: those of stores, and stores that are nothing but an outbox.

#[cfg(feature = "dynamodb")]
use crate::open::ready;
use crate::open::{Access, OpenStore, open, refuse, script};
use serde::Serialize;
use std::{collections::BTreeMap, sync::Arc};
#[cfg(feature = "dynamodb")]
use tidegate_core::{Class, Kind};
use tidegate_core::{Migrate, OutboxStore, StoreError, outbox::Advice};
#[cfg(feature = "dynamodb")]
use tidegate_dynamodb::DynamoDb;
use tidegate_postgres::Protection;

/// Commands that need no batches.
#[cfg(feature = "dynamodb")]
const WITHOUT_BATCHES: &str =
    "`publish`, `relay`, `outbox`, `check`, `doctor` and `migrate` work with it";

/// An open outbox of any kind.
#[derive(Clone)]
pub struct OpenOutbox {
    kind: OutboxKind,
    created: bool,
}

#[derive(Clone)]
enum OutboxKind {
    Store(OpenStore),
    #[cfg(feature = "dynamodb")]
    DynamoDb(Arc<DynamoDb>),
}

/// What one operation of a service that is paid by use has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Requests that were sent, those that were throttled included.
    pub requests: u64,
    /// Requests that were throttled.
    pub throttled: u64,
    /// Read capacity units, of the table and its indexes.
    pub read_units: f64,
    /// Write capacity units, of the table and its indexes.
    pub write_units: f64,
}

impl OpenOutbox {
    /// As a relay sees it.
    pub fn outbox_store(&self) -> Arc<dyn OutboxStore> {
        match &self.kind {
            OutboxKind::Store(store) => store.outbox_store(),
            #[cfg(feature = "dynamodb")]
            OutboxKind::DynamoDb(store) => store.clone(),
        }
    }

    /// Its schema.
    pub fn schema(&self) -> &dyn Migrate {
        match &self.kind {
            OutboxKind::Store(store) => &**store,
            #[cfg(feature = "dynamodb")]
            OutboxKind::DynamoDb(store) => &**store,
        }
    }

    /// How its connections are protected against others on the way; `None` if it has none.
    pub fn protection(&self) -> Option<Protection> {
        match &self.kind {
            OutboxKind::Store(store) => store.protection(),
            #[cfg(feature = "dynamodb")]
            OutboxKind::DynamoDb(_) => None,
        }
    }

    /// Whether opening it made its schema: it held nothing before.
    pub fn is_new(&self) -> bool {
        self.created
    }

    /// What people should know when a relay starts, a sentence each.
    pub fn remarks(&self) -> Vec<String> {
        match &self.kind {
            OutboxKind::Store(_) => Vec::new(),
            #[cfg(feature = "dynamodb")]
            OutboxKind::DynamoDb(store) => store.remarks(),
        }
    }

    /// What was asked of a service that is paid by use, by operation; `None` if the outbox is in no such service.
    pub fn costs(&self) -> Option<BTreeMap<&'static str, Cost>> {
        match &self.kind {
            OutboxKind::Store(_) => None,
            #[cfg(feature = "dynamodb")]
            OutboxKind::DynamoDb(store) => {
                let cost = |cost: tidegate_dynamodb::Cost| Cost {
                    requests: cost.requests,
                    throttled: cost.throttled,
                    read_units: cost.read_units,
                    write_units: cost.write_units,
                };
                Some(store.usage().into_iter().map(|(name, it)| (name, cost(it))).collect())
            }
        }
    }

    /// What is wrong with its tables although they can be used.
    pub async fn advice(&self) -> Result<Vec<Advice>, StoreError> {
        match &self.kind {
            OutboxKind::Store(_) => Ok(Vec::new()),
            #[cfg(feature = "dynamodb")]
            OutboxKind::DynamoDb(store) => store.advice().await,
        }
    }

    /// Where it is, for people, as the service itself tells; `None` if its address tells all.
    pub async fn place(&self) -> Result<Option<String>, StoreError> {
        match &self.kind {
            OutboxKind::Store(_) => Ok(None),
            #[cfg(feature = "dynamodb")]
            OutboxKind::DynamoDb(store) => Ok(Some(store.found_tables().await?.to_string())),
        }
    }
}

/// Opens an outbox: of a store as [`open`] has it, or of `dynamodb://TABLE`.
pub async fn open_outbox(url: &str, access: Access) -> Result<OpenOutbox, StoreError> {
    #[cfg(feature = "dynamodb")]
    if is_dynamodb(url) {
        let store = Arc::new(DynamoDb::connect(url).await?);
        let created = match access {
            Access::Existing => require(&store).await.map(|()| false)?,
            access => ready(&*store, access).await?,
        };
        return Ok(OpenOutbox { kind: OutboxKind::DynamoDb(store), created });
    }
    let store = open(url, access).await?;
    let created = store.is_new();
    Ok(OpenOutbox { kind: OutboxKind::Store(store), created })
}

/// Whether a text is the address of a DynamoDB table, whether or not this binary can open one.
pub fn is_dynamodb(url: &str) -> bool {
    url.starts_with("dynamodb:")
}

/// Refuses an address of DynamoDB that cannot be opened, whatever the service says. Takes all others.
pub fn check_dynamodb(url: &str) -> Result<(), StoreError> {
    if is_dynamodb(url) { dynamodb_script(url).map(|_| ()) } else { Ok(()) }
}

/// Why an address of DynamoDB is not one of a store with batches.
#[cfg(feature = "dynamodb")]
pub(crate) fn no_batches(url: &str) -> StoreError {
    let address = match tidegate_dynamodb::Address::parse(url) {
        Ok(address) => address,
        Err(error) => return error,
    };
    let reason = tidegate_dynamodb::capabilities(&address).without_batches().unwrap_or_default();
    refuse(format!("{reason}: {WITHOUT_BATCHES}; name another store for this command"))
}

/// This binary opens no such address at all.
#[cfg(not(feature = "dynamodb"))]
pub(crate) fn no_batches(url: &str) -> StoreError {
    dynamodb_script(url).expect_err("it was built without DynamoDB")
}

/// The commands that make the tables, for people who use a tool of their own.
#[cfg(feature = "dynamodb")]
pub(crate) fn dynamodb_script(url: &str) -> Result<String, StoreError> {
    Ok(tidegate_dynamodb::script(&tidegate_dynamodb::Address::parse(url)?))
}

#[cfg(not(feature = "dynamodb"))]
pub(crate) fn dynamodb_script(_: &str) -> Result<String, StoreError> {
    Err(refuse("this binary was built without DynamoDB: build it with `--features dynamodb`"))
}

/// The commands that make what is missing, for people who use a tool of their own: of a store in DynamoDB as it is now,
/// or all of it, if it cannot be looked at; of any other, [`script`].
pub async fn script_of_missing(url: &str) -> Result<String, StoreError> {
    #[cfg(feature = "dynamodb")]
    if is_dynamodb(url) {
        let address = tidegate_dynamodb::Address::parse(url)?;
        return match DynamoDb::connect(url).await {
            Ok(store) => store.script_of_missing().await,
            Err(error) => Ok(tidegate_dynamodb::script_unseen(&address, &error)),
        };
    }
    script(url)
}

/// Refuses tables that lack something, and names it.
#[cfg(feature = "dynamodb")]
async fn require(store: &DynamoDb) -> Result<(), StoreError> {
    let found = store.found_tables().await?;
    let problem = match (found.missing.as_slice(), found.being_made.as_slice()) {
        ([], []) => return Ok(()),
        ([], made) => format!(
            "DynamoDB is still filling the index {} of {}: `tidegate migrate` waits until that is done",
            made.join(" and the index "),
            store.address().place()
        ),
        (missing, _) => format!(
            "{} has no {}: run `tidegate migrate`, or check the table, the region and the endpoint in the address",
            store.address().region_or_endpoint(),
            missing.join(", no ")
        ),
    };
    Err(StoreError::new(Kind::SchemaOutdated, Class::Permanent, "open the store", problem))
}
