//! A budget that nobody declared: learned when the service says that it is used up.

use crate::{Budget, BudgetKind, Time, account::Account};
use std::time::Duration;

/// After so many trials in vain it is a budget that is used up, and no passing mood of the service.
const TRIALS: u32 = 2;
/// … and so long: what is shorter is a rate.
const EXHAUSTED: Duration = Duration::from_secs(5);
/// After so many windows without a rejection, and later after each one, a little more is tried.
const RAISED_AFTER: u32 = 4;
/// So much at first, and twice as much after each time that this proves right.
const RAISE: f64 = 0.05;
/// A budget of which less than this is used is not raised.
const USED: f64 = 0.8;

/// A budget that was seen once may have been an outage. When it should be used up again, it is asked one request
/// at a time, until it is refuted by this share of it …
const REFUTED: f64 = 0.02;
/// … and at least so many requests.
const REFUTED_AT_LEAST: f64 = 3.0;

/// A pause that is this share of the window tells something about the window, if it was long enough.
const PAUSE: u32 = 20;

/// Watches for a budget: so many requests are accepted, then not even one is, until the first of them
/// are older than its window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Learned {
    /// When the first request of the window started …
    since: Option<Time>,
    /// … and how many were accepted from there on.
    accepted: u64,
    exhausted: Option<Exhausted>,
    account: Option<Account>,
    /// It was used up more than once.
    confirmed: bool,
    /// The window is longer than this, as far as is known, and not longer than that.
    longer_than: Duration,
    not_longer_than: Duration,
    /// The budget makes requests wait, until then.
    paused_until: Option<Time>,
    /// When a little more is tried.
    raise_at: Time,
    raises: u32,
    failures: u32,
}

#[derive(Clone, Copy, Debug)]
struct Exhausted {
    /// So many were accepted before.
    after: f64,
    trials: u32,
    first: Time,
    last: Time,
}

impl Exhausted {
    fn is_budget(&self) -> bool {
        self.trials >= TRIALS && self.last.saturating_sub(self.first) >= EXHAUSTED
    }
}

impl Learned {
    /// Whether a request may start; if not, when.
    pub fn allows(&mut self, now: Time) -> Result<(), Time> {
        let Some(account) = &mut self.account else { return Ok(()) };
        if now >= self.raise_at {
            if account.used(now) >= USED * account.limit {
                account.limit *= 1.0 + RAISE * f64::from(1 << self.raises.min(8));
                self.raises += 1;
            }
            self.raise_at = now + account.window * RAISED_AFTER;
        }
        let allowed = account.allows(1.0, now);
        if !self.confirmed {
            return Ok(());
        }
        if let Err(until) = allowed
            && until.saturating_sub(now) > account.window / PAUSE
        {
            self.paused_until = Some(until);
        }
        allowed
    }

    /// A request starts. Returns whether it should ask first: the budget is believed to be free again.
    pub fn start(&mut self, now: Time) -> bool {
        let doubtful = self.is_doubtful(now);
        if let Some(account) = &mut self.account {
            account.charge(1.0, now);
        }
        self.exhausted.is_none() && (self.paused_until.is_some() || doubtful)
    }

    /// Whether the budget should be used up, but it is not known whether it is one.
    fn is_doubtful(&mut self, now: Time) -> bool {
        let Some(account) = self.account.as_mut().filter(|_| !self.confirmed) else { return false };
        let beyond = account.used(now) - account.limit;
        if beyond > (REFUTED * account.limit).max(REFUTED_AT_LEAST) {
            self.account = None;
        }
        beyond >= 0.0
    }

    /// A request that started then was accepted. Returns whether that ends an exhaustion: it was no
    /// matter of the level.
    pub fn accepted(&mut self, started: Time) -> bool {
        let exhausted = self.exhausted.take().filter(Exhausted::is_budget);
        let paused = self.paused_until.take_if(|until| started >= *until).is_some();
        let learns = exhausted.is_some() || (paused && self.account.is_some());
        if learns {
            self.learn(exhausted, started);
        }
        self.since.get_or_insert(started);
        self.accepted += 1;
        learns
    }

    /// The service accepts again: what was used first has just left the window.
    fn learn(&mut self, exhausted: Option<Exhausted>, again: Time) {
        let since = self.since.replace(again).unwrap_or(again);
        self.accepted = 0;
        self.not_longer_than = again.saturating_sub(since);
        if let Some(Exhausted { last, .. }) = exhausted {
            self.longer_than = last.saturating_sub(since);
        }
        self.longer_than = self.longer_than.min(self.not_longer_than);
        let window = (self.longer_than + self.not_longer_than) / 2;
        if let Some(account) = &mut self.account {
            account.window = window;
        }
        if let Some(Exhausted { after, .. }) = exhausted {
            self.found(after, window, again);
        }
    }

    fn found(&mut self, limit: f64, window: Duration, now: Time) {
        let limit = limit.max(1.0);
        match &mut self.account {
            Some(account) => {
                account.limit = limit;
                self.confirmed = true;
            }
            none => {
                let budget = Budget { kind: BudgetKind::Requests, limit, window };
                *none = Some(Account::new(&budget));
            }
        }
        let patience = RAISED_AFTER << self.failures.min(8);
        self.raise_at = now.saturating_add(window.saturating_mul(patience));
        self.raises = 0;
        self.failures += 1;
    }

    /// A request was rejected, and neither its level nor its rate explains it.
    pub fn rejected(&mut self, trial: bool, now: Time) {
        let counted = self.accepted as f64;
        let after = self.account.as_mut().map_or(counted, |account| account.used(now));
        let new = Exhausted { after, trials: 0, first: now, last: now };
        let exhausted = self.exhausted.get_or_insert(new);
        exhausted.trials += u32::from(trial);
        exhausted.last = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Time {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_budget_shows_in_trials_in_vain_and_the_time_until_one_succeeds() {
        let mut learned = Learned::default();
        (0..100).for_each(|_| assert!(!learned.accepted(seconds(0))));
        learned.rejected(false, seconds(10));
        (1..10).for_each(|n| learned.rejected(true, seconds(10 + 30 * n)));
        learned.accepted(seconds(310));
        for _ in 0..100 {
            assert_eq!(learned.allows(seconds(311)), Ok(()));
            assert!(!learned.start(seconds(311)));
        }
        // Seen once: it may have been an outage. One request asks.
        assert!(learned.allows(seconds(320)).is_ok() && learned.start(seconds(320)));
        (1..10).for_each(|n| learned.rejected(true, seconds(320 + 30 * n)));
        learned.accepted(seconds(615));
        (0..101).for_each(|_| {
            learned.start(seconds(615));
        });
        assert!(
            learned.allows(seconds(620)).unwrap_err() >= seconds(900),
            "seen twice: it is kept"
        );
    }

    #[test]
    fn an_outage_is_no_budget() {
        let mut learned = Learned::default();
        (0..100).for_each(|_| assert!(!learned.accepted(seconds(0))));
        (1..10).for_each(|n| learned.rejected(true, seconds(n)));
        assert!(learned.accepted(seconds(10)));
        let asks = (0..200).filter(|_| learned.start(seconds(11))).count();
        assert!((2..10).contains(&asks), "{asks} ask, then it is refuted");
    }

    #[test]
    fn a_passing_rejection_is_no_budget() {
        let mut learned = Learned::default();
        learned.accepted(seconds(0));
        learned.rejected(false, seconds(10));
        learned.rejected(true, seconds(11));
        learned.accepted(seconds(12));
        (0..1_000).for_each(|_| assert!(!learned.start(seconds(12))));
        assert_eq!(learned.allows(seconds(12)), Ok(()));
    }
}
