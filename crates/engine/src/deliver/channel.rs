//! The way to one sink: who may send now, and how it went.

use super::{breaker::Breaker, clock::WallClock, trouble::Trouble, waits::Waits};
use std::{
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tidegate_core::Sink;
use tidegate_pacer::{Gate, Size, Time};
use tokio::sync::watch;

/// Most groups that are leased at the same time: bounds the memory, whatever the pacer allows.
pub(super) const MOST_GROUPS: u32 = 1_024;

/// Everything that is sent to one sink goes through here.
pub(crate) struct Channel {
    pub sink: Arc<dyn Sink>,
    pub gate: Gate,
    pub clock: WallClock,
    pub manner: Manner,
    pub meter: Arc<Meter>,
    /// Who waits for the sink.
    pub line: tokio::sync::Mutex<()>,
    /// Calls groups back that wait.
    pub recall: watch::Sender<u64>,
    size: Mutex<Size>,
    breaker: Mutex<Breaker>,
    /// When the sink last answered here.
    answered_at: Mutex<Time>,
    stall: Mutex<Stall>,
    /// What groups wait for.
    pub(super) waits: Waits,
    /// When a destination of the sink last came back; all of them know.
    back_at: Arc<Mutex<Time>>,
}

/// Whether something is taken.
#[derive(Debug, Default)]
struct Stall {
    /// When something was taken last.
    moved_at: Time,
    /// Since when nothing was, and why.
    since: Option<(Time, String)>,
}

/// What is expected of whoever sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Somebody waits for the end: a sink that cannot be used ends it, and items have no order.
    Load,
    /// There is no end: a sink that cannot be used is tried again, and keys keep their order.
    Relay,
}

/// What was sent so far, for people.
#[derive(Debug, Default)]
pub struct Meter {
    pub(super) requests: AtomicU64,
    pub(super) answers: AtomicU64,
    pub(super) throttled: AtomicU64,
    pub(super) unavailable: AtomicU64,
    pub(super) timed_out: AtomicU64,
}

/// What a [`Meter`] says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Sent {
    /// Requests that were sent.
    pub requests: u64,
    /// Those that the sink throttled.
    pub throttled: u64,
    /// Those that found no sink.
    pub unavailable: u64,
    /// Those without an answer in time.
    pub timed_out: u64,
}

impl std::ops::Add for Sent {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            throttled: self.throttled + other.throttled,
            unavailable: self.unavailable + other.unavailable,
            timed_out: self.timed_out + other.timed_out,
        }
    }
}

impl Meter {
    /// What was sent so far.
    pub fn sent(&self) -> Sent {
        Sent {
            requests: self.requests.load(Relaxed),
            throttled: self.throttled.load(Relaxed),
            unavailable: self.unavailable.load(Relaxed),
            timed_out: self.timed_out.load(Relaxed),
        }
    }
}

impl Channel {
    /// At most `group` items in one request, as the gate allows.
    pub fn new(
        sink: Arc<dyn Sink>,
        group: usize,
        gate: Gate,
        clock: WallClock,
        manner: Manner,
    ) -> Self {
        Self::beside(sink, group, gate, clock, manner, Arc::default())
    }

    /// The same for one of several destinations of a sink.
    pub fn beside(
        sink: Arc<dyn Sink>,
        group: usize,
        gate: Gate,
        clock: WallClock,
        manner: Manner,
        back_at: Arc<Mutex<Time>>,
    ) -> Self {
        let size = Mutex::new(Size::new(group.min(sink.capabilities().max_group)));
        let (line, breaker, meter, answered_at, recall, stall, waits) = Default::default();
        Self {
            sink,
            gate,
            clock,
            manner,
            meter,
            line,
            recall,
            size,
            breaker,
            answered_at,
            stall,
            waits,
            back_at,
        }
    }

    /// When to send, in the past if at once; `None` if never again. If another destination of the sink has
    /// come back since, this one may have, too.
    pub fn until(&self) -> Option<Time> {
        let breaker = self.breaker();
        let (until, back_at) = (breaker.until()?, *locked(&self.back_at));
        let is_news = breaker.tripped_at().is_some_and(|tripped_at| back_at > tripped_at);
        Some(if is_news { until.min(back_at) } else { until })
    }

    /// The sink answered.
    pub fn answered(&self, now: Time) {
        *locked(&self.answered_at) = now;
        let mut breaker = self.breaker();
        if breaker.tripped_at().is_some() {
            breaker.close();
            *locked(&self.back_at) = now;
        }
    }

    /// Of a request sent at `sent`, something was taken, or refused for its own sake; or nothing was, for this
    /// reason.
    pub fn moved(&self, stalled: Option<&str>, sent: Time, now: Time) {
        let mut stall = locked(&self.stall);
        match stalled {
            None => *stall = Stall { moved_at: now, since: None },
            Some(reason) => {
                let began = sent.max(stall.moved_at);
                let since = stall.since.as_ref().map_or(began, |(since, _)| *since);
                stall.since = Some((since, reason.to_owned()));
            }
        }
    }

    /// Why nothing is taken, and for how long nothing was.
    pub fn stall(&self) -> Option<(String, Duration)> {
        let stall = locked(&self.stall).since.clone();
        stall.map(|(since, reason)| (reason, self.clock.time().saturating_sub(since)))
    }

    /// The sink was not there for a request sent at `sent`. Returns whether there is hope.
    pub fn absent(&self, reason: &str, sent: Time, now: Time) -> bool {
        let since = sent.max(self.answered_at());
        self.breaker().trip(reason, since, sent, now)
    }

    /// What is wrong with this destination; of several things, the one that lasts longest. That items are put off
    /// is wrong after `stalled_after`.
    pub fn trouble(&self, stalled_after: Duration) -> Option<Trouble> {
        let absence = self.breaker().trouble();
        let answered_at = self.answered_at();
        let silence = self.waits.unanswered().filter(|asked| *asked > answered_at);
        let stalls = [locked(&self.stall).since.clone(), self.waits.put_off()];
        Trouble::find(self.clock.time(), stalled_after, absence, silence, stalls)
    }

    /// When the sink last answered here.
    pub fn answered_at(&self) -> Time {
        *locked(&self.answered_at)
    }

    /// How long the sink has not been there.
    pub fn absent_for(&self) -> Option<Duration> {
        self.breaker().since().map(|since| self.clock.time().saturating_sub(since))
    }

    /// How many groups may be on their way at the same time.
    pub fn limit(&self) -> usize {
        self.gate.limit(self.clock.time()).clamp(1, MOST_GROUPS) as usize
    }

    /// Why the sink is not there, and how long until the next try; `None` while it is.
    pub fn absence(&self) -> Option<(String, Duration)> {
        self.breaker().absence(self.clock.time())
    }

    /// Whether the sink said that nobody should ask it again.
    pub fn is_gone(&self) -> bool {
        self.breaker().is_gone()
    }

    pub fn size(&self) -> MutexGuard<'_, Size> {
        locked(&self.size)
    }

    pub(super) fn breaker(&self) -> MutexGuard<'_, Breaker> {
        locked(&self.breaker)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nothing panics while it holds the lock")
}
