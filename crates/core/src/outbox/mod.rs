//! The outbox: messages that applications write in their own transactions, and relays deliver.
//!
//! Messages are appended and never changed. A key hashes to one of [`LANES`] lanes; relays lease lanes
//! and read each in order. All that is stored about progress is one cursor per lane; a message gets a
//! second row only if it is not simply done.

mod claim;
mod epoch;
pub mod horizon;
mod inspect;
mod lane;
mod message;
mod publish;
mod retain;
mod settle;
mod source;
mod steer;
mod topics;
mod trouble;

pub use claim::{Claim, ClaimRequest, Place, Reader, Reading, Refused};
pub use epoch::Epoch;
pub use inspect::{
    Advice, AuditLine, DeadGroup, Holder, InspectOutbox, OutboxStatus, Outstanding, RelayStatus,
    Selection, Stored, Stuck, StuckQuery, StuckState, TopicStatus,
};
pub(crate) use lane::is_left;
pub use lane::{Before, Gained, GiveBack, KeyHash, LANES, Lag, Lane, LaneLease, Share, Shared};
pub use message::{Message, MessageId, NewMessage, Origin};
pub use publish::Publish;
pub use retain::{Retain, Sealed};
pub use settle::{Aside, HeldKey, OnDead, Progress, SetAside, Settled, Settlement, Waiting};
pub use source::Outbox;
pub use steer::{Decision, SteerPage, Steered, Steering};
pub use topics::{Choice, Pattern, Route, Topics};
pub use trouble::{SinkTrouble, TroubleNote, TroubledSink};
