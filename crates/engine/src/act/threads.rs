//! Hands that are threads.

use super::{Acting, Desk, Hands, HungRuns, Next, act_on};
use crate::phases::Phases;
use async_trait::async_trait;
use std::{
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};

/// How often the time of runs in progress is looked at.
const WATCH: Duration = Duration::from_millis(50);
/// A workload that observes its deadline by itself gets this much to say what it was doing.
const SLACK: Duration = Duration::from_millis(250);
/// A thread inside a hung run cannot be ended. So many per thread may hang before the worker gives up.
const HUNG_PER_THREAD: usize = 8;

/// Acts with a number of threads.
pub struct Threads {
    count: usize,
    phases: Arc<Phases>,
}

impl Threads {
    /// This many threads, whose time is counted in `phases`.
    pub fn new(count: usize, phases: Arc<Phases>) -> Self {
        Self { count: count.max(1), phases }
    }
}

#[async_trait]
impl Hands for Threads {
    fn count(&self) -> usize {
        self.count
    }

    async fn work(&self, desk: Arc<Desk>) -> Result<(), HungRuns> {
        let crew = Arc::new(Crew {
            desk,
            phases: self.phases.clone(),
            busy: Mutex::default(),
            alive: AtomicUsize::new(self.count),
            hung: AtomicUsize::new(0),
            gone: Notify::new(),
        });
        (0..self.count).for_each(|_| crew.spawn(None));
        loop {
            tokio::select! {
                () = crew.gone.notified() => return Ok(()),
                () = tokio::time::sleep(WATCH) => crew.replace_hung(),
            }
            let hung = crew.hung.load(Ordering::Acquire);
            if hung > self.count * HUNG_PER_THREAD {
                return Err(HungRuns(hung));
            }
        }
    }
}

struct Crew {
    desk: Arc<Desk>,
    phases: Arc<Phases>,
    /// What is being acted on, by thread.
    busy: Mutex<Vec<Arc<Acting>>>,
    /// Threads that are not given up.
    alive: AtomicUsize,
    /// Threads that are given up and have not come back.
    hung: AtomicUsize,
    gone: Notify,
}

impl Crew {
    fn busy(&self) -> MutexGuard<'_, Vec<Arc<Acting>>> {
        self.busy.lock().expect("nothing panics while it holds the lock")
    }

    fn spawn(self: &Arc<Self>, first: Option<Arc<Acting>>) {
        let crew = self.clone();
        thread::Builder::new()
            .name("tidegate-act".to_owned())
            .spawn(move || crew.act(first))
            .expect("the system has threads left");
    }

    /// Acts on groups until the desk is closed.
    fn act(&self, first: Option<Arc<Acting>>) {
        let mut result = Vec::new();
        let mut next = first;
        while let Some(acting) = next.take().or_else(|| self.wait_for_group()) {
            self.busy().push(acting.clone());
            if !self.act_through(&acting, &mut result) {
                self.hung.fetch_sub(1, Ordering::AcqRel);
                return; // superseded: another thread counts in this one's place
            }
            self.busy().retain(|other| !Arc::ptr_eq(other, &acting));
        }
        if self.alive.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.gone.notify_one();
        }
    }

    fn wait_for_group(&self) -> Option<Arc<Acting>> {
        let start = Instant::now();
        let acting = self.desk.next_blocking();
        self.phases.idle_time.add_time(start.elapsed());
        acting
    }

    /// Acts on all runs of a group. Returns whether these hands are still needed.
    fn act_through(&self, acting: &Acting, result: &mut Vec<u8>) -> bool {
        let mut now = Instant::now();
        while let Some((item, turn)) = acting.begin(now) {
            let acted = act_on(acting.group(), item, now, result);
            now = Instant::now();
            let next = acting.record(turn, acted, result, now);
            self.desk.recorded(next);
            match next {
                Next::Go { .. } => {}
                Next::Wait => {
                    self.phases.held_up_time.add_time(acting.wait_until_collected());
                    now = Instant::now();
                }
                Next::End => break,
                Next::Superseded => return false,
            }
        }
        true
    }

    /// Puts a new thread in the place of each one whose run hangs.
    fn replace_hung(self: &Arc<Self>) {
        let now = Instant::now();
        let timed_out = |acting: &mut Arc<Acting>| {
            let timeout = acting.group().batch.timeout;
            timeout.is_some_and(|timeout| acting.take_over(timeout + SLACK, now))
        };
        let hung: Vec<_> = self.busy().extract_if(.., timed_out).collect();
        for acting in hung {
            self.hung.fetch_add(1, Ordering::AcqRel);
            self.desk.recorded(Next::End);
            self.spawn(Some(acting));
        }
    }
}
