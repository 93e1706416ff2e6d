//! The memory store passes the suite: it is the reference that the others are compared with.

use std::time::SystemTime;
use tidegate_conformance::{Fresh, conformance};
use tidegate_core::Memory;

async fn fresh() -> Fresh {
    let clock = || SystemTime::UNIX_EPOCH.elapsed().expect("the clock is past 1970");
    Fresh::new(Memory::new(clock))
}

conformance!(fresh);
