//! Decides who is polled next, and who is not polled any more.

use crate::plan::Fate;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};
use tokio::time::{Instant, Sleep, sleep_until};

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Polls ready workers in an order that the seed decides, and carries out their fates: a crash drops
/// the worker between two awaits, a freeze leaves it alone for a while.
pub struct Scheduler {
    workers: Vec<Worker>,
    rng: ChaCha8Rng,
    outer: Arc<Mutex<Option<Waker>>>,
}

struct Worker {
    task: Option<Task>,
    ready: Arc<Ready>,
    fate: Fate,
    polls: u64,
    thaw: Option<Pin<Box<Sleep>>>,
}

struct Ready {
    flag: AtomicBool,
    outer: Arc<Mutex<Option<Waker>>>,
}

impl Wake for Ready {
    fn wake(self: Arc<Self>) {
        self.flag.store(true, Ordering::Relaxed);
        let outer = self.outer.lock().expect("nothing panics while it holds the lock");
        outer.as_ref().inspect(|waker| waker.wake_by_ref());
    }
}

impl Scheduler {
    pub fn new(seed: u64) -> Self {
        Self { workers: Vec::new(), rng: ChaCha8Rng::seed_from_u64(seed), outer: Arc::default() }
    }

    pub fn add(&mut self, task: impl Future<Output = ()> + 'static, fate: Fate) {
        let ready = Ready { flag: AtomicBool::new(true), outer: self.outer.clone() };
        self.workers.push(Worker {
            task: Some(Box::pin(task)),
            ready: Arc::new(ready),
            fate,
            polls: 0,
            thaw: None,
        });
    }

    fn pick(&mut self, cx: &mut Context<'_>) -> Option<usize> {
        let ready: Vec<usize> =
            (0..self.workers.len()).filter(|i| self.workers[*i].is_ready(cx)).collect();
        (!ready.is_empty()).then(|| ready[self.rng.random_range(0..ready.len())])
    }
}

impl Worker {
    fn is_ready(&mut self, cx: &mut Context<'_>) -> bool {
        if let Some(thaw) = &mut self.thaw {
            if thaw.as_mut().poll(cx).is_pending() {
                return false;
            }
            self.thaw = None;
        }
        self.task.is_some() && self.ready.flag.load(Ordering::Relaxed)
    }

    fn poll(&mut self) {
        self.ready.flag.store(false, Ordering::Relaxed);
        let waker = Waker::from(self.ready.clone());
        let Some(task) = &mut self.task else { return };
        if task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            self.task = None;
            return;
        }
        self.polls += 1;
        match self.fate {
            Fate::Crashes { polls } if polls == self.polls => self.task = None,
            Fate::Freezes { polls, length } if polls == self.polls => {
                self.thaw = Some(Box::pin(sleep_until(Instant::now() + length)));
            }
            _ => {}
        }
    }
}

impl Future for Scheduler {
    type Output = Vec<u64>;

    /// Ready with the number of polls of each worker once none is left.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Vec<u64>> {
        *self.outer.lock().expect("nothing panics while it holds the lock") =
            Some(cx.waker().clone());
        while let Some(next) = self.pick(cx) {
            self.workers[next].poll();
        }
        if self.workers.iter().all(|worker| worker.task.is_none()) {
            return Poll::Ready(self.workers.iter().map(|worker| worker.polls).collect());
        }
        Poll::Pending
    }
}
