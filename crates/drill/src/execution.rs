//! How long a request takes, and what becomes of it.

use crate::spec::Spec;
use std::time::Duration;

/// Nothing takes longer, whatever the knee says.
const LONGEST: Duration = Duration::from_secs(3600);

/// What becomes of a request once it was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Answered,
    Failed,
    Unavailable,
    Dropped,
}

impl Fate {
    /// What meets a request with this luck, from 0 to 1.
    pub fn of(luck: f64, spec: &Spec) -> Self {
        let failed = spec.drop_share + spec.fail_share;
        if luck < spec.drop_share {
            Self::Dropped
        } else if luck < failed {
            Self::Failed
        } else if luck < failed + spec.unavailable_share {
            Self::Unavailable
        } else {
            Self::Answered
        }
    }
}

/// The execution time of a request with `records`, when `in_flight` are executed with it. `noise` is
/// uniform from 0 to 1.
pub fn execution(spec: &Spec, in_flight: usize, records: usize, noise: f64) -> Duration {
    let plain = spec.delay.as_secs_f64() + spec.delay_per_record.as_secs_f64() * records as f64;
    let jitter = spec.jitter * -(1.0 - noise).ln();
    let scale = spec.scale * in_flight.saturating_sub(1) as f64;
    let knee = spec
        .knee
        .map_or(0.0, |knee| knee.exponent.powf(in_flight.saturating_sub(knee.start) as f64) - 1.0);
    let seconds = plain * (1.0 + jitter + scale + knee);
    Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Knee;

    const DELAY: Duration = Duration::from_millis(100);

    fn ms(spec: &Spec, in_flight: usize, records: usize, noise: f64) -> f64 {
        (execution(spec, in_flight, records, noise).as_secs_f64() * 1e6).round() / 1e3
    }

    #[test]
    fn records_and_load_add_to_the_delay() {
        let delay_per_record = Duration::from_millis(1);
        let spec = Spec { delay: DELAY, delay_per_record, scale: 0.5, ..Spec::default() };
        assert_eq!(ms(&spec, 1, 0, 0.5), 100.0);
        assert_eq!(ms(&spec, 1, 50, 0.5), 150.0);
        assert_eq!(ms(&spec, 3, 0, 0.5), 200.0);
    }

    #[test]
    fn beyond_the_knee_delays_grow_exponentially() {
        let knee = Some(Knee { start: 10, exponent: 1.1 });
        let spec = Spec { delay: DELAY, knee, ..Spec::default() };
        assert_eq!(ms(&spec, 10, 1, 0.5), 100.0);
        assert_eq!(ms(&spec, 11, 1, 0.5), 110.0);
        assert_eq!(ms(&spec, 12, 1, 0.5), 121.0);
        assert_eq!(execution(&spec, 100_000, 1, 0.5), LONGEST);
    }

    #[test]
    fn jitter_is_exponential_with_mean_one() {
        let spec = Spec { delay: DELAY, jitter: 0.1, ..Spec::default() };
        assert_eq!(ms(&spec, 1, 1, 0.0), 100.0);
        let sum: f64 = (0..10_000).map(|i| ms(&spec, 1, 1, f64::from(i) / 10_000.0)).sum();
        assert!((sum / 10_000.0 - 110.0).abs() < 0.1, "{sum}");
    }

    #[test]
    fn luck_decides_by_the_declared_shares() {
        let shares = Spec { drop_share: 0.1, fail_share: 0.2, ..Spec::default() };
        let spec = Spec { unavailable_share: 0.3, ..shares };
        let fates = [0.05, 0.15, 0.35, 0.65].map(|luck| Fate::of(luck, &spec));
        assert_eq!(fates, [Fate::Dropped, Fate::Failed, Fate::Unavailable, Fate::Answered]);
        assert_eq!(Fate::of(0.0, &Spec::default()), Fate::Answered);
    }
}
