//! Which faults are made when: drawn from a seed before the drill starts, and pure.

#[cfg(test)]
mod tests;

use crate::postgres::Crash;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::time::Duration;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Wishes {
    /// How long faults are made.
    pub duration: Duration,
    /// How many processes there are.
    pub processes: usize,
    /// How often one of them is killed, stopped or restarted, on average.
    pub kill_every: Option<Duration>,
    /// How often the server crashes, on average.
    pub crash_every: Option<Duration>,
    /// How often the server is replaced by its standby, in all.
    pub failovers: u32,
    /// The lease of the processes: one that is stopped is stopped for longer.
    pub lease: Duration,
}

/// A fault of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessFault {
    /// SIGKILL.
    Kill,
    /// SIGSTOP, and SIGCONT after this time.
    Stop(Duration),
    /// SIGTERM: it is asked to end.
    Restart,
}

/// A fault of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerFault {
    /// It ends without any farewell, and starts again after this time.
    Crash(Crash, Duration),
    /// It is replaced by its standby, which has received nothing for this time.
    FailOver(Crash, Duration),
}

/// Faults in the order of time since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// With the place of the process.
    pub processes: Vec<(Duration, usize, ProcessFault)>,
    /// Of the server.
    pub server: Vec<(Duration, ServerFault)>,
}

impl Plan {
    /// Draws a plan: the same one for the same seed and wishes.
    pub fn draw(seed: u64, wishes: &Wishes) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let times = moments(&mut rng, wishes.kill_every, wishes.duration);
        let fault = |at| {
            let place = rng.random_range(0..wishes.processes.max(1));
            (at, place, process_fault(&mut rng, wishes.lease))
        };
        let processes = times.into_iter().map(fault).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(!seed);
        let mut server = failovers(&mut rng, wishes);
        for at in moments(&mut rng, wishes.crash_every, wishes.duration) {
            let down = Duration::from_millis(rng.random_range(0..500));
            server.push((at, ServerFault::Crash(crash(&mut rng), down)));
        }
        server.sort_by_key(|(at, _)| *at);
        Self { processes, server }
    }
}

/// Moments at this distance on average, each half as far to half again as far from the one before.
fn moments(rng: &mut ChaCha8Rng, every: Option<Duration>, duration: Duration) -> Vec<Duration> {
    let Some(every) = every else { return Vec::new() };
    let (mut at, mut moments) = (Duration::ZERO, Vec::new());
    loop {
        at += every.mul_f64(rng.random_range(0.5..1.5));
        if at >= duration {
            return moments;
        }
        moments.push(at);
    }
}

/// Most are kills: they are the hardest.
fn process_fault(rng: &mut ChaCha8Rng, lease: Duration) -> ProcessFault {
    match rng.random_range(0..10) {
        0 => ProcessFault::Stop(lease.mul_f64(rng.random_range(1.2..2.0))),
        1 => ProcessFault::Restart,
        _ => ProcessFault::Kill,
    }
}

/// One in each part of the time, away from its ends.
fn failovers(rng: &mut ChaCha8Rng, wishes: &Wishes) -> Vec<(Duration, ServerFault)> {
    let part = wishes.duration.div_f64(f64::from(wishes.failovers.max(1)));
    let failover = |n| {
        let at = part.mul_f64(f64::from(n) + rng.random_range(0.2..0.5));
        let lag = Duration::from_millis(rng.random_range(500..2_000)).min(part.mul_f64(0.3));
        (at, ServerFault::FailOver(crash(rng), lag))
    };
    (0..wishes.failovers).map(failover).collect()
}

fn crash(rng: &mut ChaCha8Rng) -> Crash {
    if rng.random_bool(0.5) { Crash::Kill } else { Crash::Immediate }
}
