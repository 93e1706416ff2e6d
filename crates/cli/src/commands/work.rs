//! What `run` and `worker` have in common: a worker's options.

use crate::{app::App, args::WorkFlags};
use tidegate::{WorkerOptions, worker_id};

/// A new worker's options: flags go before settings, settings before defaults.
pub fn options(app: &App, flags: &WorkFlags) -> WorkerOptions {
    let config = &app.config;
    let mut options = WorkerOptions::new(worker_id());
    if let Some(threads) = flags.threads.or(config.threads) {
        options.threads = threads as usize;
    }
    if let Some(runs) = flags.flush_runs.or(config.flush_runs) {
        options.flush_runs = runs;
    }
    if let Some(time) = flags.flush_after.or(config.flush_after) {
        options.flush_after = time.0;
    }
    if let Some(time) = flags.lease.or(config.lease) {
        options.lease = time.0;
    }
    if let Some(time) = flags.grace.or(config.grace) {
        options.grace = time.0;
    }
    options.range_length = flags.range_length.or(config.range_length);
    options
}
