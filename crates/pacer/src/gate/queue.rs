//! Waiting in line.

use super::{Gate, Permit};
use crate::{Time, connection::Wait};
use std::{
    future::Future,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::Duration,
};

/// Tells the time and waits. Implemented by whoever knows a runtime.
pub trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> Time;

    /// Returns at this time or a little later.
    fn sleep_until(&self, time: Time) -> impl Future<Output = ()> + Send;
}

/// The service wants to be left alone on every connection, for longer than callers want to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("every connection is throttled for another {0:.0?}")]
pub struct TooLong(pub Duration);

impl Gate {
    /// Waits in line until a request may start. Callers of one class are let through in the order in
    /// which they came. A caller that gives up leaves the line, and holds nothing while it waits.
    pub async fn start(&self, clock: &impl Clock) -> Result<Permit, TooLong> {
        // The semaphore is never closed: waiting cannot fail.
        let _turn = self.class.turn.acquire().await;
        // Said before it looks: room that comes after the look is told.
        let _waiting = Waiting::begin(&self.class.waits);
        loop {
            let now = clock.now();
            match self.try_start(now) {
                Ok(permit) => return Ok(permit),
                Err(wait) => self.wait(wait, now, clock).await?,
            }
        }
    }

    async fn wait(&self, wait: Wait, now: Time, clock: &impl Clock) -> Result<(), TooLong> {
        let room = self.class.room.notified();
        let Some(until) = wait.until else {
            room.await;
            return Ok(());
        };
        let left = until.saturating_sub(now);
        if wait.is_asked() && left > self.pacer.0.options.tolerance {
            return Err(TooLong(left));
        }
        let (room, time) = (std::pin::pin!(room), std::pin::pin!(clock.sleep_until(until)));
        First { one: room, other: time }.await;
        Ok(())
    }
}

/// Somebody waits for room, until this is dropped.
struct Waiting<'a>(&'a AtomicBool);

impl<'a> Waiting<'a> {
    fn begin(waits: &'a AtomicBool) -> Self {
        waits.store(true, SeqCst);
        Self(waits)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.store(false, SeqCst);
    }
}

/// Ready when either of two is.
struct First<A, B> {
    one: A,
    other: B,
}

impl<A, B> Future for First<A, B>
where
    A: Future<Output = ()> + Unpin,
    B: Future<Output = ()> + Unpin,
{
    type Output = ();

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<()> {
        if std::pin::Pin::new(&mut self.one).poll(context).is_ready() {
            return std::task::Poll::Ready(());
        }
        std::pin::Pin::new(&mut self.other).poll(context)
    }
}
