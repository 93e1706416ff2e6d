//! Hands that are threads.

use super::{Acting, Desk, Hands, HungRuns, Next, Workbench, watch::Watch};
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
    busy: Mutex<Vec<Busy>>,
    /// Threads that are not given up.
    alive: AtomicUsize,
    /// Threads that are given up and have not come back.
    hung: AtomicUsize,
    gone: Notify,
}

/// What a thread is on.
struct Busy {
    acting: Arc<Acting>,
    /// The item that was in progress when it was last looked at …
    item: Option<u64>,
    /// … and when it was first seen.
    since: Instant,
}

impl Busy {
    /// Looks at the item in progress, and takes it over if it has been for longer than it may.
    fn take_over_if_hung(&mut self, now: Instant) -> bool {
        let item = self.acting.in_progress();
        if item != self.item {
            (self.item, self.since) = (item, now);
        }
        let Some((item, timeout)) = item.zip(self.acting.group().batch.timeout) else {
            return false;
        };
        now - self.since >= timeout + SLACK && self.acting.take_over(item, timeout, now)
    }
}

impl Crew {
    fn busy(&self) -> MutexGuard<'_, Vec<Busy>> {
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
        let mut workbench = Workbench::default();
        let mut next = first;
        while let Some(acting) = next.take().or_else(|| self.wait_for_group()) {
            self.busy().push(Busy { acting: acting.clone(), item: None, since: Instant::now() });
            if !self.act_through(&acting, &mut workbench) {
                self.hung.fetch_sub(1, Ordering::AcqRel);
                return; // superseded: another thread counts in this one's place
            }
            self.busy().retain(|busy| !Arc::ptr_eq(&busy.acting, &acting));
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
    fn act_through(&self, acting: &Acting, workbench: &mut Workbench) -> bool {
        let mut watch = Watch::start();
        while let Some((mut item, turn)) = acting.begin(watch.now) {
            loop {
                let acted = workbench.act(acting.group(), item);
                watch.run_ended();
                let next = acting.record(turn, acted, watch.now);
                self.desk.recorded(next);
                match next {
                    Next::Go { item: following, .. } => item = following,
                    Next::Wait => break,
                    Next::End => return true,
                    Next::Superseded => return false,
                }
            }
            self.phases.held_up_time.add_time(acting.wait_until_collected());
            watch.read();
        }
        true
    }

    /// Puts a new thread in the place of each one whose run hangs.
    fn replace_hung(self: &Arc<Self>) {
        let now = Instant::now();
        let hung: Vec<_> = self.busy().extract_if(.., |busy| busy.take_over_if_hung(now)).collect();
        for Busy { acting, .. } in hung {
            self.hung.fetch_add(1, Ordering::AcqRel);
            self.desk.recorded(Next::End);
            self.spawn(Some(acting));
        }
    }
}
