//! After a rejection, one request asks whether the service takes requests again.

use crate::Time;
use std::time::Duration;

/// The longest pause between two trials of a service that does not say how long to wait.
const LONGEST: Duration = Duration::from_secs(30);

/// Whether requests may start freely.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Trial {
    /// They may.
    #[default]
    Over,
    /// One may, from this time on.
    Due { from: Time, pause: Duration },
    /// One is under way: the others wait for its answer.
    Asked { pause: Duration },
}

impl Trial {
    /// Ask, as soon as the service allows.
    pub fn due(now: Time) -> Self {
        Trial::Due { from: now, pause: Duration::ZERO }
    }

    /// Whether a request may start, and if not, from when one may.
    pub fn allows(&self, now: Time) -> Result<(), Option<Time>> {
        match self {
            Trial::Over => Ok(()),
            Trial::Due { from, .. } if now >= *from => Ok(()),
            Trial::Due { from, .. } => Err(Some(*from)),
            Trial::Asked { .. } => Err(None),
        }
    }

    /// A request starts. Returns whether it is the trial.
    pub fn start(&mut self) -> bool {
        let Trial::Due { pause, .. } = *self else { return false };
        *self = Trial::Asked { pause };
        true
    }

    /// The trial was rejected: the next comes later each time.
    pub fn again(&mut self, round_trip: Duration, now: Time) {
        let pause = match *self {
            Trial::Due { pause, .. } | Trial::Asked { pause } => pause,
            Trial::Over => Duration::ZERO,
        };
        let pause = (pause * 2).max(round_trip).max(Duration::from_millis(10)).min(LONGEST);
        *self = Trial::Due { from: now + pause, pause };
    }

    /// The trial was given up without an answer.
    pub fn abandoned(&mut self, now: Time) {
        if let Trial::Asked { pause } = *self {
            *self = Trial::Due { from: now, pause };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_asks_and_the_others_wait() {
        let second = Duration::from_secs(1);
        let mut trial = Trial::due(second);
        assert_eq!(trial.allows(Time::ZERO), Err(Some(second)));
        assert_eq!(trial.allows(second), Ok(()));
        assert!(trial.start());
        assert_eq!(trial.allows(second), Err(None));
        assert!(!trial.start());
        trial.again(Duration::from_millis(100), second);
        assert_eq!(trial.allows(second), Err(Some(Duration::from_millis(1_100))));
    }

    #[test]
    fn trials_come_later_each_time() {
        let (mut trial, mut now) = (Trial::due(Time::ZERO), Time::ZERO);
        let mut pauses = Vec::new();
        for _ in 0..4 {
            trial.start();
            trial.again(Duration::from_millis(100), now);
            let from = trial.allows(now).unwrap_err().unwrap();
            pauses.push((from - now).as_millis());
            now = from;
        }
        assert_eq!(pauses, [100, 200, 400, 800]);
    }
}
