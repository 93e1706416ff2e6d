//! Where groups lie until they are settled.

use super::{Acting, Experience, Held, Next, Outcome};
use crate::group::Group;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tidegate_core::{BatchId, Fence};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep},
};

/// Holds every group from claim to settlement.
pub struct Desk {
    flush_runs: u64,
    flush_after: Duration,
    /// So many finished runs of one group are worth a look by the settling loop.
    ripe_at: u64,
    queue: async_channel::Sender<Arc<Acting>>,
    taken: async_channel::Receiver<Arc<Acting>>,
    held: Mutex<BTreeMap<Fence, Arc<Acting>>>,
    /// What groups that are gone have left to learn from.
    gone_experience: Mutex<Vec<(BatchId, Experience)>>,
    /// Something may be worth settling.
    ripe: Notify,
    /// There may be room for new leases, or something to finalize.
    free: Notify,
    /// No further run may begin.
    closed: watch::Sender<bool>,
    /// Nobody acts on anything any more.
    done: AtomicBool,
}

impl Desk {
    /// An empty desk for this many hands.
    pub fn new(hands: usize, flush_runs: u64, flush_after: Duration) -> Self {
        let (queue, taken) = async_channel::unbounded();
        Self {
            flush_runs,
            flush_after,
            ripe_at: flush_runs.div_ceil(hands.max(1) as u64),
            queue,
            taken,
            held: Mutex::default(),
            gone_experience: Mutex::default(),
            ripe: Notify::new(),
            free: Notify::new(),
            closed: watch::Sender::new(false),
            done: AtomicBool::new(false),
        }
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<Fence, Arc<Acting>>> {
        self.held.lock().expect("nothing panics while it holds the lock")
    }

    /// Lays groups down for the hands.
    pub fn put(&self, groups: Vec<Group>) {
        for group in groups {
            let fence = group.lease.fence;
            let acting = Arc::new(Acting::new(group, self.flush_runs));
            if let Some(replaced) = self.held().insert(fence, acting.clone()) {
                replaced.halt();
            }
            if self.queue.try_send(acting.clone()).is_err() {
                acting.halt(); // closed meanwhile: it will be given back
            }
        }
    }

    /// The next group to act on; `None` once the desk is closed.
    pub async fn next(&self) -> Option<Arc<Acting>> {
        self.taken.recv().await.ok()
    }

    /// The same, blocking the thread.
    pub fn next_blocking(&self) -> Option<Arc<Acting>> {
        self.taken.recv_blocking().ok()
    }

    /// Tells the loops what came of recording a run.
    pub fn recorded(&self, next: Next) {
        match next {
            Next::Go { waiting, .. } if !self.is_ripe(waiting) => {}
            Next::Go { .. } | Next::Wait => self.ripe.notify_one(),
            Next::End => {
                self.free.notify_one();
                self.ripe.notify_one();
            }
            Next::Superseded => {}
        }
    }

    /// Says that hands may be able to take more groups than before.
    pub fn room_changed(&self) {
        self.free.notify_one();
    }

    /// Whether so many finished runs of one group are worth telling. Not each one beyond is.
    fn is_ripe(&self, waiting: u64) -> bool {
        let step = (self.ripe_at / 16).max(1);
        waiting >= self.ripe_at && waiting.is_multiple_of(step)
    }

    /// Lets no further run begin. What is finished stays to be settled.
    pub fn close(&self) {
        self.queue.close();
        self.closed.send_replace(true);
        self.held().values().for_each(|acting| acting.halt());
    }

    /// Returns once no further run may begin.
    pub async fn closed(&self) {
        // The sender lives as long as `self`: waiting cannot fail.
        let _ = self.closed.subscribe().wait_for(|closed| *closed).await;
    }

    /// Says that all hands are gone: what is finished now is all there will be.
    pub fn finish(&self) {
        self.done.store(true, Ordering::Release);
        self.ripe.notify_one();
    }

    /// Returns when there may be room, or something was settled.
    pub async fn freed(&self) {
        self.free.notified().await;
    }

    /// How long runs of each batch took since this was last asked.
    pub fn experience(&self) -> Vec<(BatchId, Experience)> {
        let mut experience = std::mem::take(&mut *self.gone_experience());
        let held = self.held();
        experience.extend(held.values().filter_map(|acting| acting.batch_experience()));
        experience
    }

    fn gone_experience(&self) -> MutexGuard<'_, Vec<(BatchId, Experience)>> {
        self.gone_experience.lock().expect("nothing panics while it holds the lock")
    }

    /// How many groups have runs to act on, and how many are held in all.
    pub fn load(&self) -> (usize, usize) {
        let held = self.held();
        (held.values().filter(|acting| !acting.is_finished()).count(), held.len())
    }

    /// Waits until finished runs are worth settling and moves them out; empty at the end.
    pub async fn outcomes(&self) -> Vec<Outcome> {
        loop {
            let done = self.done.load(Ordering::Acquire);
            let (runs, oldest) = self.waiting();
            let old = oldest.is_some_and(|oldest| oldest.elapsed() >= self.flush_after);
            let idle = runs > 0 && self.load().0 == 0;
            let held_up = self.somebody_waits() || self.suspect_is_finished();
            if done || old || idle || held_up || runs >= self.flush_runs {
                let outcomes = self.collect();
                if done || !outcomes.is_empty() {
                    return outcomes;
                }
            }
            let pause = oldest.map_or(self.flush_after, |oldest| {
                self.flush_after.saturating_sub(oldest.elapsed()).max(Duration::from_millis(1))
            });
            tokio::select! {
                biased;
                () = self.ripe.notified() => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// Whether hands are held up by a full buffer, of whatever many runs.
    fn somebody_waits(&self) -> bool {
        self.held().values().any(|acting| acting.must_wait())
    }

    /// Whether a suspect waits to be settled: the worker gets no other before.
    fn suspect_is_finished(&self) -> bool {
        let finished = |acting: &Arc<Acting>| acting.is_finished() && acting.waiting().0 > 0;
        self.held().values().any(|acting| acting.group().lease.suspect && finished(acting))
    }

    /// The batches that are being worked on.
    pub fn batches(&self) -> BTreeSet<BatchId> {
        self.held().values().map(|acting| acting.group().batch.id).collect()
    }

    fn waiting(&self) -> (u64, Option<Instant>) {
        let held = self.held();
        let waiting = held.values().map(|acting| acting.waiting());
        waiting.fold((0, None), |(all, first), (runs, oldest)| {
            (all + runs, [first, oldest].into_iter().flatten().min())
        })
    }

    /// Takes outcomes until they have as many runs as one flush should. What has waited longest goes
    /// first, so that a group that is acted on all the time holds up no other.
    fn collect(&self) -> Vec<Outcome> {
        let held = self.held();
        let mut waiting: Vec<_> =
            held.values().filter_map(|acting| Some((acting.waiting().1?, acting))).collect();
        waiting.sort_by_key(|(oldest, _)| *oldest);
        let mut runs = 0;
        let mut outcomes = Vec::new();
        for (_, acting) in waiting {
            if runs >= self.flush_runs {
                break;
            }
            if let Some(outcome) = acting.collect() {
                runs += outcome.progress.len();
                outcomes.push(outcome);
            }
        }
        outcomes
    }

    /// Takes note of what is durable, and clears away the leases that are settled to their end.
    pub fn settled(&self, outcomes: &[Outcome]) {
        for outcome in outcomes {
            if let Some(acting) = self.held().get(&outcome.fence) {
                acting.settled(outcome.progress.len());
            }
        }
        self.remove(outcomes.iter().filter(|outcome| outcome.finished).map(|o| o.fence));
    }

    /// Clears away leases that were lost.
    pub fn lose(&self, fences: &[Fence]) {
        self.remove(fences.iter().copied());
    }

    fn remove(&self, fences: impl Iterator<Item = Fence>) {
        for fence in fences {
            if let Some(acting) = self.held().remove(&fence) {
                acting.halt();
                self.gone_experience().extend(acting.batch_experience());
                self.free.notify_one();
            }
        }
    }

    /// The leases on all that is not settled yet.
    pub fn leases(&self) -> Vec<Held> {
        self.held().values().map(|acting| acting.rest()).collect()
    }
}
