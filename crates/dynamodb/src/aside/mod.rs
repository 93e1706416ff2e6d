//! What was set aside: records in the side table.
//!
//! A message that is not simply done leaves the indexes of outstanding messages, in the same transaction that writes
//! its record; so however many wait or are dead, a look for new messages does not pass them. What waits and what is
//! dead are in different parts of the table: taking lanes over does not pass the dead either.

mod load;
mod place;
mod record;

pub(crate) use load::Loading;
pub(crate) use place::Place;
pub(crate) use record::{Part, Record};
