//! Running a policy on each service of a tournament.

use super::{Drawn, Family, Kind};
use crate::scenario::{AnyPolicy, Patience, Report, Scenario};
use serde::Serialize;
use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// Whoever takes longer than this many times the ideal has failed.
const TOO_LONG: f64 = 20.0;
/// So has who sends more than this many times the requests …
const TOO_MANY: u64 = 25;
/// … or does something at more than this many points in time per request.
const TOO_BUSY: u64 = 200;
/// Both are allowed so much besides.
const FREE: u64 = 10_000;
/// A rise should be used after so many seconds …
const AFTER_RISE: f64 = 15.0;
/// … and what a service had before a fall or an outage after so many, …
const AFTER_FALL: f64 = 10.0;
/// … or after so many round trips, if that is longer.
const ROUND_TRIPS: f64 = 50.0;

/// Which services are drawn.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Tournament {
    /// Where they are drawn from.
    pub family: Family,
    /// How many.
    pub services: u64,
    /// Decides which.
    pub seed: u64,
}

/// How a policy did on one service.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Played {
    /// The service's number in the tournament.
    pub number: u64,
    /// Its kind.
    pub kind: Kind,
    /// Whether it has latency.
    pub latency: bool,
    /// The ideal time as a share of what it took; 0 if it did not finish.
    pub efficiency: f64,
    /// Rejected and timed out, as a share of what was sent.
    pub lost: f64,
    /// Requests that were sent inside a Retry-After.
    pub inside_retry_after: u64,
    /// The most that was allowed in flight, as a share of what may be.
    pub limit: f64,
    /// Whether the service was in full use again soon after its last change; none: it does not change, or
    /// the work ended before.
    pub soon_in_use: Option<bool>,
}

impl Tournament {
    /// A service.
    pub fn service(&self, number: u64) -> Drawn {
        self.family.draw(self.seed, number)
    }

    /// Runs a policy on all services, on so many threads.
    pub fn play(&self, policy: AnyPolicy, threads: usize) -> Vec<Played> {
        let (next, played) = (AtomicU64::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..threads.max(1) {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Relaxed);
                        if number >= self.services {
                            return;
                        }
                        let one = play(number, &self.service(number), policy);
                        played.lock().expect("no run panics while it holds the lock").push(one);
                    }
                });
            }
        });
        let mut played = played.into_inner().expect("all threads have ended well");
        played.sort_by_key(|one| one.number);
        played
    }
}

fn play(number: u64, drawn: &Drawn, policy: AnyPolicy) -> Played {
    let scenario = &drawn.scenario;
    let patience = Patience {
        time: Duration::from_secs_f64(TOO_LONG * scenario.ideal()),
        attempts: TOO_MANY * scenario.requests + FREE,
        steps: TOO_BUSY * scenario.requests + FREE,
    };
    let report = scenario.run_as(policy, patience);
    let finished = report.successes >= scenario.requests;
    Played {
        number,
        kind: drawn.kind,
        latency: !scenario.service.latency.is_zero(),
        efficiency: if finished { report.efficiency() } else { 0.0 },
        lost: report.reject_share(),
        inside_retry_after: report.inside_retry_after,
        limit: report.limit.max / (scenario.connections as f64 * f64::from(scenario.pacer.max)),
        soon_in_use: soon_in_use(drawn.kind, scenario, &report),
    }
}

fn soon_in_use(kind: Kind, scenario: &Scenario, report: &Report) -> Option<bool> {
    let changed = scenario.changes.last()?.at.as_secs_f64();
    let seconds = if kind == Kind::Rises { AFTER_RISE } else { AFTER_FALL };
    let soon = seconds.max(ROUND_TRIPS * scenario.round_trip(&scenario.service));
    match report.regained {
        Some(after) => Some(after <= soon),
        None => (report.makespan > changed + soon).then_some(false),
    }
}
