//! The schema of a store.

use crate::StoreError;
use async_trait::async_trait;

/// Brings a store's schema to what this binary needs.
#[async_trait]
pub trait Migrate: Send + Sync {
    /// Applies what is missing. Afterwards [`Migrate::schema`] is `Current`. May be called twice, and
    /// by several processes at once. Returns the names of what it applied.
    async fn migrate(&self) -> Result<Vec<&'static str>, StoreError>;

    /// How the store's schema compares with what this binary needs.
    async fn schema(&self) -> Result<Schema, StoreError>;
}

/// How a store's schema compares with what this binary needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    /// There is none yet.
    Missing,
    /// It lacks migrations.
    Outdated {
        /// The newest that was applied.
        found: i64,
        /// The newest that this binary has.
        needed: i64,
    },
    /// It is what this binary needs, or has additions by a newer binary, which never hurt.
    Current,
}
