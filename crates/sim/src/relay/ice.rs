//! A relay that is not polled for a while, as under SIGSTOP.

use super::history::{Event, History};
use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    sync::Notify,
    time::{Sleep, sleep},
};

/// Whether a relay is frozen. What it has spawned waits here before each call, and before each answer; it
/// goes on in the order in which it came.
#[derive(Clone, Debug, Default)]
pub struct Ice(Arc<State>);

#[derive(Debug, Default)]
struct State {
    frozen: AtomicBool,
    thawed: Notify,
}

impl Ice {
    pub async fn thawed(&self) {
        while self.0.frozen.load(Relaxed) {
            self.0.thawed.notified().await;
        }
    }

    fn set(&self, frozen: bool) {
        self.0.frozen.store(frozen, Relaxed);
        if !frozen {
            self.0.thawed.notify_waiters();
        }
    }
}

/// Freezes after so many polls, for so long.
#[derive(Clone, Copy, Debug)]
pub struct Frost {
    /// After this many polls.
    pub polls: u64,
    /// For this long.
    pub length: Duration,
}

/// Polls a relay, but for the times when it is frozen.
pub struct Freezing<F> {
    inner: Pin<Box<F>>,
    polls: u64,
    frosts: Vec<Frost>,
    thaw: Option<Pin<Box<Sleep>>>,
    ice: Ice,
    history: History,
    life: usize,
}

impl<F: Future> Freezing<F> {
    pub fn new(inner: F, frosts: Vec<Frost>, ice: Ice, history: History, life: usize) -> Self {
        Self { inner: Box::pin(inner), polls: 0, frosts, thaw: None, ice, history, life }
    }

    fn is_frozen(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(thaw) = &mut self.thaw else { return false };
        if thaw.as_mut().poll(cx).is_pending() {
            return true;
        }
        self.thaw = None;
        self.history.add(self.life, Event::Thawed);
        self.ice.set(false);
        false
    }
}

impl<F: Future> Future for Freezing<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        if self.is_frozen(cx) {
            return Poll::Pending;
        }
        if let Poll::Ready(output) = self.inner.as_mut().poll(cx) {
            return Poll::Ready(output);
        }
        self.polls += 1;
        let polls = self.polls;
        if let Some(frost) = self.frosts.iter().find(|frost| frost.polls == polls).copied() {
            self.thaw = Some(Box::pin(sleep(frost.length)));
            self.history.add(self.life, Event::Froze);
            self.ice.set(true);
            self.is_frozen(cx);
        }
        Poll::Pending
    }
}
