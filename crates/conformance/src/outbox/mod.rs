//! The outbox: what is published is read in order by whoever has its lane, and nothing is lost.

pub(crate) mod bench;
pub(crate) mod by_state;
pub(crate) mod claim;
mod differential;
pub(crate) mod due;
mod histories;
pub(crate) mod inspect;
pub(crate) mod keys;
pub(crate) mod lag;
pub(crate) mod limit;
pub(crate) mod list;
pub(crate) mod publish;
pub(crate) mod relay;
pub(crate) mod reopen;
pub(crate) mod retain;
pub(crate) mod settle;
pub(crate) mod share;
pub(crate) mod steer;
pub(crate) mod take_over;
pub(crate) mod trouble;
pub(crate) mod went_back;

pub use differential::outbox_differential;
pub use histories::outbox_histories;
pub use list::outbox_cases;
