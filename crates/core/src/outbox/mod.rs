//! The outbox: messages that applications write in their own transactions, and relays deliver.
//!
//! Messages are appended and never changed. A key hashes to one of [`LANES`] lanes; relays lease lanes
//! and read each in order. All that is stored about progress is one cursor per lane; a message gets a
//! second row only if it is not simply done.

pub mod by_state;
mod capabilities;
mod claim;
mod epoch;
pub mod horizon;
mod id;
mod inspect;
mod lane;
mod message;
mod position;
mod publish;
mod retain;
mod settle;
mod source;
mod steer;
mod topics;
mod trouble;

pub use by_state::StateOutbox;
pub use capabilities::{
    Habits, Ids, KeyOrder, Lines, Listing, OutboxCapabilities, Publishing, Reads, Relays,
    WhoseClock,
};
pub use claim::{Claim, ClaimRequest, Place, Reader, Reading};
pub use epoch::Epoch;
pub use id::{EmptyId, MessageId};
pub use inspect::{
    Advice, AuditLine, DeadGroup, Holder, InspectOutbox, OutboxStatus, Outstanding, RelayStatus,
    Selection, Stored, Stuck, StuckQuery, StuckState, TopicStatus,
};
pub(crate) use lane::is_left;
pub use lane::{Before, Gained, GiveBack, KeyHash, LANES, Lag, Lane, LaneLease, Share, Shared};
pub use message::{Message, NewMessage, Origin};
pub use position::Position;
pub use publish::Publish;
pub use retain::{Retain, Sealed};
pub use settle::{Aside, HeldKey, OnDead, Progress, SetAside, Settled, Settlement, Waiting};
pub use source::Outbox;
pub use steer::{Decision, SteerPage, Steered, Steering};
pub use topics::{Choice, Pattern, Route, Topics};
pub use trouble::{SinkTrouble, TroubleNote, TroubledSink};
