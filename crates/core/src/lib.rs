//! The vocabulary of Tidegate: batches, runs, ranges, leases, verdicts, aggregates, and the seams
//! between the engine, the stores and the workloads.
//!
//! This crate knows no runtime, no clock and no logger. Time is an argument; I/O happens behind
//! [`Source`], [`Submit`], [`Inspect`] and [`Migrate`].

pub mod aggregate;
pub mod batch;
pub mod claim;
pub mod error;
pub mod exception;
pub mod headers;
pub mod inspect;
pub mod lease;
pub mod limits;
pub mod memory;
pub mod migrate;
pub mod outbox;
pub mod pace;
pub mod page;
pub mod range;
pub mod retry;
pub mod run;
pub mod settle;
pub mod sink;
pub mod snapshot;
pub mod source;
pub mod stamp;
pub mod submit;
pub mod suspect;
pub mod workload;

pub use aggregate::{Aggregates, Summary};
pub use batch::{Batch, BatchId, BatchState, Keep};
pub use error::{Class, Kind, StoreError};
pub use exception::{Exception, ExceptionState};
pub use headers::Headers;
pub use inspect::Inspect;
pub use lease::{Fence, Items, Lease, RetryItem, WorkerId};
pub use memory::{Memory, Saved};
pub use migrate::Migrate;
pub use outbox::{
    InspectOutbox, Message, MessageId, NewMessage, Outbox, Position, Publish, Retain,
};
pub use pace::PaceBook;
pub use page::Page;
pub use range::Range;
pub use retry::RetryPolicy;
pub use run::{Run, RunError};
pub use sink::Sink;
pub use snapshot::{InvalidSnapshot, Snapshot, SnapshotHash};
pub use source::Source;
pub use submit::Submit;
pub use workload::{AnyWorkload, Workload, Workloads};

/// Everything a store offers to the command line and to embedders: all seams at once.
pub trait Store: Source + Submit + Inspect + PaceBook + OutboxStore + Migrate {}
impl<T: Source + Submit + Inspect + PaceBook + OutboxStore + Migrate + ?Sized> Store for T {}

/// Everything that a store offers of its outbox.
pub trait OutboxStore: Outbox + Publish + InspectOutbox + Retain {}
impl<T: Outbox + Publish + InspectOutbox + Retain + ?Sized> OutboxStore for T {}
