//! The store for many machines: PostgreSQL 15 or newer.
//!
//! Every call of the hot path is one statement, in `sql/`, sent unnamed in one round trip: nothing
//! depends on the session, so that a pooler in transaction mode may sit in between (law 15). The
//! database's clock decides what is expired and what is due (law 12).
//!
//! How a server is reached:
//!
//! | file | what it decides |
//! |---|---|
//! | `address/` | what a URL or libpq settings say; what the driver does not know is taken out of them |
//! | `tls/` | who a server may be, who the client is, and what people are told if it fails |
//! | `connect.rs` | which server is tried next, and which connections can still be used |
//! | `pool.rs` | deadlines; a connection whose call did not end is closed, and its statement is stopped |
//! | `limits.rs` | every bound on connections and calls |
//! | `adopted/encoding.rs` | texts of databases that are not in UTF-8: one that cannot be decoded is set aside alone |
//! | `adopted/front.rs` | from where on rows are read, because what was set aside stays pending |

mod address;
pub mod adopted;
mod claim;
mod connect;
mod decode;
mod error;
mod finalize;
mod inspect;
mod limits;
mod migrate;
mod outbox;
mod pace;
mod pool;
mod renew;
mod settle;
mod submit;
mod tls;

pub use address::{files, is_address, role, with_database, without_password};
pub use adopted::Adopted;
pub use connect::{Protection, client};
pub use migrate::script;
pub use outbox::publish;

use async_trait::async_trait;
use pool::Pool;
use std::sync::Arc;
use tidegate_core::{
    BatchId, Fence, Lease, Source, StoreError,
    claim::{Claim, ClaimRequest},
    settle::{Settled, Settlement},
    source::{Capabilities, Finalized, Renewal},
};

/// A store in a PostgreSQL database, in its schema `tidegate`.
pub struct Postgres {
    /// Shared with the tables that were adopted in the same database.
    pool: Arc<Pool>,
    memo: outbox::Memo,
}

impl Postgres {
    /// Connects to `postgres://user:password@host:port/database`, or to `host=… dbname=…` as libpq has it.
    /// Afterwards the server has answered once; the schema may still be missing.
    ///
    /// The address says whether TLS is spoken: `sslmode` is `disable`, `prefer` (the default: TLS if the server
    /// speaks it, without verifying it), `verify-ca`, `verify-full`, or `require`, which verifies as `verify-full` does
    /// unless `sslverify=none` is given. `sslrootcert` names the file with trusted authorities, or `system`;
    /// `sslcert` and `sslkey` name the client's certificate and its key. `channel_binding=require` binds the login
    /// to TLS.
    pub async fn connect(address: &str) -> Result<Self, StoreError> {
        let pool = Arc::new(Pool::connect(address).await?);
        Ok(Self { pool, memo: outbox::Memo::default() })
    }

    /// How the latest connection is protected against others on the way.
    pub fn protection(&self) -> Option<Protection> {
        self.pool.protection()
    }

    /// How many statements were sent so far.
    pub fn statements(&self) -> u64 {
        self.pool.statements()
    }
}

#[async_trait]
impl Source for Postgres {
    fn capabilities(&self) -> Capabilities {
        Capabilities { name: "postgres", durable: true, shared: true }
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claim, StoreError> {
        claim::claim(&self.pool, &request).await
    }

    async fn renew(&self, request: Renewal) -> Result<Vec<Fence>, StoreError> {
        renew::renew(&self.pool, &request).await
    }

    async fn settle(&self, settlement: Settlement) -> Result<Settled, StoreError> {
        settle::settle(&self.pool, &settlement).await
    }

    async fn give_back(&self, leases: Vec<Lease>) -> Result<(), StoreError> {
        renew::give_back(&self.pool, &leases).await
    }

    async fn finalize(&self, batches: Vec<BatchId>) -> Result<Vec<Finalized>, StoreError> {
        finalize::finalize(&self.pool, &batches).await
    }

    async fn wake(&self) {
        std::future::pending().await
    }
}
