//! The simulated table that is read by state passes the cases that its capabilities promise. Its index does not lag
//! here: cases do not wait.

use std::time::{Duration, SystemTime};
use tidegate_conformance::{FreshOutbox, outbox_conformance};
use tidegate_sim::relay::{
    IndexPlan,
    indexed::{Client, Table},
};

async fn fresh() -> FreshOutbox {
    let clock = || SystemTime::UNIX_EPOCH.elapsed().expect("the clock is past 1970");
    let table = Table::new(1, Duration::ZERO, clock);
    FreshOutbox::new(move || Client::new(&table, &IndexPlan::calm(), None, Duration::ZERO))
}

outbox_conformance!(fresh);
