//! Running a policy on each service of a tournament.

use super::{Drawn, Family, Kind};
use crate::scenario::{AnyPolicy, Patience};
use std::{
    sync::{Mutex, atomic::AtomicU64, atomic::Ordering::Relaxed},
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

/// Which services are drawn.
#[derive(Clone, Copy, Debug)]
pub struct Tournament {
    /// Where they are drawn from.
    pub family: Family,
    /// How many.
    pub services: u64,
    /// Decides which.
    pub seed: u64,
}

/// How a policy did on one service.
#[derive(Clone, Debug)]
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
                        let one = play(number, self.service(number), policy);
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

fn play(number: u64, drawn: Drawn, policy: AnyPolicy) -> Played {
    let Drawn { kind, scenario, .. } = drawn;
    let patience = Patience {
        time: Duration::from_secs_f64(TOO_LONG * scenario.ideal()),
        attempts: TOO_MANY * scenario.requests + FREE,
        steps: TOO_BUSY * scenario.requests + FREE,
    };
    let report = scenario.run_as(policy, patience);
    let finished = report.successes >= scenario.requests;
    Played {
        number,
        kind,
        latency: !scenario.service.latency.is_zero(),
        efficiency: if finished { report.efficiency() } else { 0.0 },
        lost: report.reject_share(),
    }
}

/// The figures of several runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// How many runs.
    pub services: usize,
    /// Half of them are at least so efficient, …
    pub median: f64,
    /// … nine of ten so efficient, …
    pub worst_tenth: f64,
    /// … and all of them so efficient.
    pub worst: f64,
    /// Nine of ten lose at most this share of what they send.
    pub lost_p90: f64,
    /// So many did not finish.
    pub unfinished: usize,
}

impl Figures {
    /// Of these runs.
    pub fn of<'a>(played: impl IntoIterator<Item = &'a Played>) -> Self {
        let played: Vec<&Played> = played.into_iter().collect();
        let efficiency = sorted(played.iter().map(|one| one.efficiency));
        let lost = sorted(played.iter().map(|one| one.lost));
        Self {
            services: played.len(),
            median: quantile(&efficiency, 0.5),
            worst_tenth: quantile(&efficiency, 0.1),
            worst: quantile(&efficiency, 0.0),
            lost_p90: quantile(&lost, 0.9),
            unfinished: efficiency.iter().filter(|share| **share == 0.0).count(),
        }
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The value below which this share of the others is.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let index = (sorted.len() as f64 * share) as usize;
    sorted.get(index.min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}
