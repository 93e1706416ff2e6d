//! The way to one sink: who may send now, and how it went.

use super::{breaker::Breaker, clock::WallClock};
use std::{
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tidegate_core::Sink;
use tidegate_pacer::{Gate, Size};

/// Most groups that are leased at the same time: bounds the memory, whatever the pacer allows.
const MOST_GROUPS: u32 = 1_024;

/// Everything that is sent to one sink goes through here.
pub(crate) struct Channel {
    pub sink: Arc<dyn Sink>,
    pub gate: Gate,
    pub clock: WallClock,
    pub manner: Manner,
    pub meter: Arc<Meter>,
    /// Who waits for the sink.
    pub line: tokio::sync::Mutex<()>,
    size: Mutex<Size>,
    breaker: Mutex<Breaker>,
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
        let size = Mutex::new(Size::new(group.min(sink.capabilities().max_group)));
        let (line, breaker, meter) = Default::default();
        Self { sink, gate, clock, manner, size, breaker, line, meter }
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
        self.size.lock().expect("nothing panics while it holds the lock")
    }

    pub(super) fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().expect("nothing panics while it holds the lock")
    }
}
