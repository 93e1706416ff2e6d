//! The two tables: Brighter's, with the messages, and one beside it for leases and what was set aside.

mod create;
mod found;
mod layout;
mod migrate;
mod script;
mod ttl;
mod wait;

pub use found::FoundTables;
pub(crate) use layout::Layout;
pub use script::{script, script_unseen};

/// The side table's keys.
pub(crate) const SCOPE: &str = "Scope";
pub(crate) const NAME: &str = "Name";
