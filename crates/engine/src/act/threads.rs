//! Hands that are threads.

use super::{Acting, Desk, Hands, HandsError, Next, Workbench, watch::Watch};
use crate::phases::{Phases, Stretch};
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

    async fn work(&self, desk: Arc<Desk>) -> Result<(), HandsError> {
        let crew = Arc::new(Crew {
            desk,
            phases: self.phases.clone(),
            busy: Mutex::default(),
            alive: AtomicUsize::new(self.count),
            hung: AtomicUsize::new(0),
            gone: Notify::new(),
        });
        for _ in 0..self.count {
            crew.spawn(None)?;
        }
        loop {
            tokio::select! {
                () = crew.gone.notified() => return Ok(()),
                () = tokio::time::sleep(WATCH) => crew.replace_hung()?,
            }
            let hung = crew.hung.load(Ordering::Acquire);
            if hung > self.count * HUNG_PER_THREAD {
                return Err(HandsError::Hung(hung));
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
    /// Ends with this value, also when the thread never comes back.
    _phase: Stretch,
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
        now - self.since >= timeout.saturating_add(SLACK)
            && self.acting.take_over(item, timeout, now)
    }
}

impl Crew {
    fn busy(&self) -> MutexGuard<'_, Vec<Busy>> {
        self.busy.lock().expect("nothing panics while it holds the lock")
    }

    fn spawn(self: &Arc<Self>, first: Option<Arc<Acting>>) -> Result<(), HandsError> {
        let crew = self.clone();
        let thread = thread::Builder::new().name("tidegate-act".to_owned());
        thread.spawn(move || crew.act(first)).map(drop).map_err(HandsError::NoThread)
    }

    /// Acts on groups until the desk is closed.
    fn act(&self, first: Option<Arc<Acting>>) {
        let mut workbench = Workbench::default();
        let mut next = first;
        while let Some(acting) = next.take().or_else(|| self.wait_for_group()) {
            let phase = self.phases.busy_time.begin();
            let since = Instant::now();
            self.busy().push(Busy { acting: acting.clone(), item: None, since, _phase: phase });
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
        let _phase = self.phases.idle_time.begin();
        self.desk.next_blocking()
    }

    /// Acts on all runs of a group. Returns whether these hands are still needed.
    fn act_through(&self, acting: &Acting, workbench: &mut Workbench) -> bool {
        let mut watch = Watch::start();
        while let Some((mut item, turn)) = acting.begin(watch.now) {
            loop {
                let acted = workbench.act(acting.group(), item);
                watch.run_ended();
                let next = acting.record(turn, acted, watch.now);
                if matches!(next, Next::Wait | Next::End) {
                    watch.read();
                    acting.pause(watch.now);
                }
                self.desk.recorded(next);
                match next {
                    Next::Go { item: following, .. } => item = following,
                    Next::Wait => break,
                    Next::End => return true,
                    Next::Superseded => return false,
                }
            }
            let phase = self.phases.held_up_time.begin();
            acting.wait_until_collected();
            drop(phase);
            watch.read();
        }
        true
    }

    /// Puts a new thread in the place of each one whose run hangs.
    fn replace_hung(self: &Arc<Self>) -> Result<(), HandsError> {
        let now = Instant::now();
        let hung: Vec<_> = self.busy().extract_if(.., |busy| busy.take_over_if_hung(now)).collect();
        for Busy { acting, .. } in hung {
            self.hung.fetch_add(1, Ordering::AcqRel);
            self.desk.recorded(Next::End);
            self.spawn(Some(acting))?;
        }
        Ok(())
    }
}
