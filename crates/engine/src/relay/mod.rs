//! The relay: messages from the lanes of an outbox to the sinks that routes name.
//!
//! ```text
//! share lanes → claim → group → act → settle
//! ```
//!
//! [`Flow`](flow::Flow) knows everything and decides; `work/` carries it out. Claims, settlements and
//! groups go on side by side, one claim and one settlement at a time. Of each key one group is on its
//! way. What a sink holds up is set aside or read apart, so that it holds up no other.

mod counts;
mod flow;
mod group;
mod held;
mod lanes;
mod leaving;
mod options;
mod places;
mod plan;
mod queue;
mod reading;
mod trouble;
mod verdicts;
mod work;

pub use crate::deliver::{STALLED_AFTER, Trouble, TroubleKind};
pub use counts::Counts;
pub use options::RelayOptions;
pub use plan::{Plan, PlannedSink, TopicPolicy};
pub use work::{Relay, RelayError, RelayReport, RelayWatch, SinkWatch, purge};

#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod flawed;
#[cfg(test)]
mod flow_tests;
#[cfg(test)]
mod place_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod trouble_tests;
