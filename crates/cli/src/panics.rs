//! Panics inside runs become verdicts, with their message; stderr is for everything else.

use std::{panic, thread};

/// The name of the threads that carry out runs.
pub const ACTING: &str = "tidegate-act";

/// Silences panics of threads that carry out runs: a workload may panic a million times.
pub fn keep_those_of_runs_quiet() {
    let default = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if thread::current().name() != Some(ACTING) {
            default(info);
        }
    }));
}
