//! Round trips: how long they take when nothing waits, and whether they grow with the level.

use crate::Time;
use std::time::Duration;

/// Round trips that grew by less than this are as good as before.
const TOLERATED: f64 = 0.2;
/// … and by less than this, in seconds: timers and threads of this process are late by as much.
const NOTICED: f64 = 0.003;
/// The difference must be this many standard errors, so that jitter is not taken for waiting.
const ERRORS: f64 = 2.5;
/// So large a share of round trips must be longer: a short stall makes a few of them much longer.
const MOST: f64 = 0.7;
/// Round trips this close to the base are part of it.
const SAME: f64 = 0.05;
/// Older round trips count less: the base is an average over about so many.
const REMEMBERED: f64 = 500.0;
/// A base that is this much longer than the best one tells that something else is wrong.
const WORSE: f64 = 1.5;
/// With each judgement the best base is forgotten by this much.
const FORGOTTEN: f64 = 1.005;
/// After a change of the level, answers count from so many round trips on.
const PASSED_OVER: f64 = 3.0;
/// So many round trips are needed for a judgement.
const FEWEST: f64 = 3.0;

/// Compares round trips now with those at a level where nothing waited: the same statistic of both,
/// so that a service whose answers vary is not taken for one that slows down.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoundTrip {
    base: Sample,
    now: Sample,
    /// From when on they count.
    from: Time,
    /// How many were in flight when those began, all added up.
    in_flight: f64,
    /// The shortest base so far; what is long ago counts less.
    best: f64,
    /// The last judgement was bad: one more, and it counts.
    suspected: bool,
    /// What was seen before the level fell, until it is known whether that helped.
    fell: Option<Fell>,
}

#[derive(Clone, Copy, Debug)]
struct Fell {
    from: u32,
    mean: f64,
}

/// Mean and spread of numbers, one at a time.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    count: f64,
    mean: f64,
    squares: f64,
    /// How many are longer than the base's mean by more than is tolerated.
    longer: f64,
}

/// What round trips tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// As short as ever.
    Good,
    /// Longer, in a way that the level explains: at most so many are really being worked on.
    Inflated { useful: u32 },
    /// Still as long although the level fell from here: the level does not explain it.
    Slower { from: u32 },
}

impl RoundTrip {
    /// Adds one that began as one of so many in flight.
    pub fn add(&mut self, round_trip: Duration, in_flight: u32, now: Time) {
        if now < self.from {
            return;
        }
        let seconds = round_trip.as_secs_f64();
        self.now.add(seconds);
        self.now.longer += f64::from(u8::from(seconds > self.base.tolerated()));
        self.in_flight += f64::from(in_flight);
    }

    /// What a request takes; zero while nothing is known.
    pub fn mean(&self) -> Duration {
        let mean = if self.now.count > 0.0 { self.now.mean } else { self.base.mean };
        Duration::from_secs_f64(mean)
    }

    /// How many round trips were added since the last judgement.
    pub fn count(&self) -> u32 {
        self.now.count as u32
    }

    /// Whether round trips are longer than they should be, or a good deal longer than they once were:
    /// more in flight would not help, whoever's fault it is.
    pub fn is_inflated(&self) -> bool {
        self.base.count > 0.0
            && (self.now.is_above(&self.base) || self.base.mean > self.best * WORSE)
    }

    /// Whether one round trip is longer than those at the base.
    pub fn is_slow(&self, round_trip: Duration) -> bool {
        let spread = (self.base.error() * self.base.count).sqrt();
        let usual = self.base.tolerated() + ERRORS * spread;
        self.base.count > 0.0 && round_trip.as_secs_f64() > usual
    }

    /// Makes what was added part of the base.
    pub fn settle(&mut self) {
        let now = std::mem::take(&mut self.now);
        self.in_flight = 0.0;
        self.base.merge(&now);
    }

    /// Judges the round trips since the last judgement, now that the level is this. Unless it is sure
    /// already, inflation takes two judgements: among many, one is bad by chance.
    pub fn judge(&mut self, level: u32, sure: bool) -> Verdict {
        let verdict = self.judge_now(level, sure);
        let best = if self.best > 0.0 { self.best * FORGOTTEN } else { f64::MAX };
        self.best = best.min(self.base.mean);
        verdict
    }

    fn judge_now(&mut self, level: u32, sure: bool) -> Verdict {
        let now = std::mem::take(&mut self.now);
        let in_flight = std::mem::take(&mut self.in_flight) / now.count;
        if self.base.count == 0.0 {
            self.base = now;
            return Verdict::Good;
        }
        if !now.is_above(&self.base) {
            self.suspected = false;
            self.fell = None;
            if now.mean < self.base.mean * (1.0 + SAME) {
                self.base.merge(&now);
            }
            return Verdict::Good;
        }
        if let Some(fell) = self.fell.take()
            && now.mean - self.base.mean > (fell.mean - self.base.mean) / 2.0
        {
            self.base = now;
            return Verdict::Slower { from: fell.from };
        }
        if !std::mem::replace(&mut self.suspected, !sure) && !sure {
            return Verdict::Good;
        }
        self.fell = Some(Fell { from: level, mean: now.mean });
        let useful = (in_flight * self.base.mean / now.mean).round().max(1.0) as u32;
        Verdict::Inflated { useful }
    }

    /// Drops what was added since the last judgement: the level is another one now. The first answers
    /// after that are the fastest ones, and are passed over.
    pub fn skip(&mut self, now: Time) {
        self.now = Sample::default();
        self.in_flight = 0.0;
        self.from = now + Duration::from_secs_f64(PASSED_OVER * self.base.mean);
    }

    /// Forgets the base: the next judgement makes it anew.
    pub fn forget(&mut self) {
        self.base = Sample::default();
    }
}

impl Sample {
    fn add(&mut self, value: f64) {
        self.count += 1.0;
        let delta = value - self.mean;
        self.mean += delta / self.count;
        self.squares += delta * (value - self.mean);
    }

    fn merge(&mut self, other: &Sample) {
        if other.count == 0.0 {
            return;
        }
        let count = self.count + other.count;
        let delta = other.mean - self.mean;
        self.mean += delta * other.count / count;
        self.squares += other.squares + delta * delta * self.count * other.count / count;
        self.count = count;
        if self.count > REMEMBERED {
            self.squares *= REMEMBERED / self.count;
            self.count = REMEMBERED;
        }
    }

    /// The square of the standard error of the mean.
    fn error(&self) -> f64 {
        if self.count < 2.0 { 0.0 } else { self.squares / (self.count - 1.0) / self.count }
    }

    /// What is as good as the mean.
    fn tolerated(&self) -> f64 {
        self.mean + (self.mean * TOLERATED).max(NOTICED)
    }

    fn is_above(&self, base: &Sample) -> bool {
        let above = self.mean - base.mean;
        self.count >= FEWEST
            && self.longer >= self.count * MOST
            && self.mean > base.tolerated()
            && above > ERRORS * (self.error() + base.error()).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(round_trip: &mut RoundTrip, ms: &[u64]) {
        let in_flight = ms.len() as u32;
        ms.iter().for_each(|ms| round_trip.add(Duration::from_millis(*ms), in_flight, Time::ZERO));
    }

    #[test]
    fn growth_with_the_level_is_inflation() {
        let mut round_trip = RoundTrip::default();
        add(&mut round_trip, &[100; 8]);
        assert_eq!(round_trip.judge(8, true), Verdict::Good);
        add(&mut round_trip, &[160; 16]);
        assert!(round_trip.is_inflated());
        assert_eq!(round_trip.judge(16, true), Verdict::Inflated { useful: 10 });
        add(&mut round_trip, &[102; 10]);
        assert_eq!(round_trip.judge(10, true), Verdict::Good);
    }

    #[test]
    fn a_service_that_is_slower_at_any_level_is_the_new_base() {
        let mut round_trip = RoundTrip::default();
        add(&mut round_trip, &[100; 8]);
        round_trip.judge(8, true);
        add(&mut round_trip, &[300; 8]);
        assert_eq!(round_trip.judge(8, true), Verdict::Inflated { useful: 3 });
        add(&mut round_trip, &[300; 8]);
        assert_eq!(round_trip.judge(3, true), Verdict::Slower { from: 8 });
        add(&mut round_trip, &[300; 8]);
        assert_eq!(round_trip.judge(8, true), Verdict::Good);
    }

    #[test]
    fn one_bad_judgement_may_be_chance() {
        let mut round_trip = RoundTrip::default();
        add(&mut round_trip, &[100; 8]);
        round_trip.judge(8, true);
        for (ms, verdict) in [
            (160, Verdict::Good),
            (100, Verdict::Good),
            (160, Verdict::Good),
            (160, Verdict::Inflated { useful: 10 }),
        ] {
            add(&mut round_trip, &[ms; 16]);
            assert_eq!(round_trip.judge(16, false), verdict);
        }
    }

    #[test]
    fn a_stall_is_no_inflation() {
        let mut round_trip = RoundTrip::default();
        add(&mut round_trip, &[100; 64]);
        round_trip.judge(16, true);
        add(&mut round_trip, &[[100; 16].as_slice(), &[900; 16], &[100; 32]].concat());
        assert!(!round_trip.is_inflated());
    }

    #[test]
    fn timers_that_are_late_are_no_inflation() {
        let mut round_trip = RoundTrip::default();
        add(&mut round_trip, &[5; 16]);
        round_trip.judge(16, true);
        add(&mut round_trip, &[7; 32]);
        assert!(!round_trip.is_inflated());
        assert_eq!(round_trip.judge(32, true), Verdict::Good);
        add(&mut round_trip, &[10; 64]);
        assert!(round_trip.is_inflated());
    }

    #[test]
    fn jitter_is_no_inflation() {
        let mut round_trip = RoundTrip::default();
        add(&mut round_trip, &[100, 130, 101, 105]);
        round_trip.judge(4, true);
        add(&mut round_trip, &[180, 102, 110, 140, 101, 250]);
        assert!(!round_trip.is_inflated());
    }
}
