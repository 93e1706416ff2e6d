//! What the sink does with deliveries: one topic never fails, the others do now and then.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tidegate_drill::recorder::Treatment;

/// The topic whose sink never fails and never waits.
pub const HEALTHY: &str = "healthy";
/// All topics. A key belongs to one of them.
pub const TOPICS: [&str; 4] = [HEALTHY, "orders", "prices", "mails"];
/// The sink of the other topics takes up to this long to answer.
const MOST_DELAY_MICROS: u64 = 5_000;

/// The topic of a key.
pub fn topic(key: u32) -> &'static str {
    TOPICS[key as usize % TOPICS.len()]
}

/// Draws what becomes of a delivery on a topic.
pub fn treatment(seed: u64, fail_share: f64) -> impl Fn(&str) -> Treatment + Send + Sync + 'static {
    let rng = Mutex::new(ChaCha8Rng::seed_from_u64(seed));
    move |topic| {
        if topic == HEALTHY {
            return Treatment { accepted: true, delay: Duration::ZERO };
        }
        let mut rng = rng.lock().unwrap_or_else(PoisonError::into_inner);
        let accepted = !rng.random_bool(fail_share);
        Treatment { accepted, delay: Duration::from_micros(rng.random_range(0..MOST_DELAY_MICROS)) }
    }
}
