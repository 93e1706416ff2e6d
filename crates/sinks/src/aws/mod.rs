//! What the sinks to Amazon's services have in common: all but the calls themselves.
//!
//! | file | what is in it |
//! |---|---|
//! | `config.rs` | how AWS is reached, as a user declares it |
//! | `connection.rs` | region and credentials, found as the AWS SDK finds them |
//! | `http.rs` | the SDK's requests, sent by the sinks' own client |
//! | `place.rs` | which queue or topic an item goes to |
//! | `attributes.rs`, `entry.rs` | an item → an entry of a batch |
//! | `brighter.rs` | the same for consumers that are written with Brighter |
//! | `batch.rs` | entries → calls that fit the limits |
//! | `code.rs`, `answer.rs` | what AWS says → what became of the entries |
//! | `publish.rs` | the order in which this happens |
//!
//! The SDK sends nothing twice here: its own retries are off, because the relay retries and the pacer
//! must know of every call.

mod answer;
mod attributes;
mod batch;
mod brighter;
mod code;
mod config;
mod connection;
mod entry;
mod http;
mod place;
mod publish;

pub use answer::{Failed, Refusal, Told};
pub use batch::Call;
pub use brighter::Layout;
pub use config::{Access, MAX_GROUP};
pub use entry::{Entry, TYPE};
pub use place::{Naming, Places};
pub use publish::{Publisher, Service, settled};
