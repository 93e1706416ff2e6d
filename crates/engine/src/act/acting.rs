//! A group while it is acted on: what is finished and waits to be settled.

use super::one::{Acted, Yield, failed};
use crate::group::Group;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;
use tidegate_core::{
    Aggregates, BatchId, Fence, Items, Lease, Page, Range, RetryItem, RunError,
    limits::MAX_PAGE_BYTES,
    page::PageBuilder,
    settle::{Failed, Progress},
};
use tokio::time::Instant;

/// A group on the desk. Runs are acted on in order, so that what is finished is always the first
/// part of what is left, and one number says how far it got.
pub struct Acting {
    group: Group,
    /// The buffer is full at this many runs: more wait until some are collected.
    full_at: u64,
    state: Mutex<State>,
    collected: Condvar,
}

struct State {
    /// Who may record. Raised when a hung run is taken over, so that its thread, should it come back,
    /// changes nothing.
    turn: u32,
    /// The item that is being acted on, or is next.
    position: u64,
    /// Whether it is being acted on …
    begun: bool,
    /// … and since when nothing was recorded.
    since: Instant,
    /// The first item not yet collected …
    collected_to: u64,
    /// … and the first not yet settled.
    settled_to: u64,
    buffer: Buffer,
    experience: Experience,
    halted: bool,
}

impl State {
    fn count_time(&mut self, now: Instant) {
        self.experience.busy += now - self.since;
        self.since = now;
    }
}

/// How long runs of a batch took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Experience {
    /// So many runs …
    pub runs: u64,
    /// … took so long in all.
    pub busy: Duration,
}

#[derive(Default)]
struct Buffer {
    page: PageBuilder,
    aggregates: Aggregates,
    failed: Vec<Failed>,
    failed_bytes: usize,
    oldest: Option<Instant>,
}

impl Buffer {
    fn fail(&mut self, failed: Failed) {
        self.failed_bytes += size_of::<Failed>() + failed.reason.len();
        self.failed.push(failed);
    }

    fn bytes(&self) -> usize {
        self.page.bytes() + self.failed_bytes
    }
}

/// Finished runs of one lease, moved out to be settled.
pub struct Outcome {
    /// The lease's batch.
    pub batch: BatchId,
    /// The lease's fence.
    pub fence: Fence,
    /// Which runs.
    pub progress: Progress,
    /// Their results.
    pub page: Option<Page>,
    /// Their aggregates.
    pub aggregates: Aggregates,
    /// The failed ones.
    pub failed: Vec<Failed>,
    /// Whether they are the last of their lease.
    pub finished: bool,
}

/// A lease, or what is left of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Without what is known to be settled.
    pub lease: Lease,
    /// A part of it is being settled: the store may know of that before this worker does.
    pub settling: bool,
}

/// What to do after a run was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next one is begun: carry it out.
    Go {
        /// Which one.
        item: RetryItem,
        /// How many finished runs wait to be settled.
        waiting: u64,
    },
    /// Wait until the buffer is collected, then begin the next one.
    Wait,
    /// Nothing is left to do here.
    End,
    /// The run was taken over meanwhile: these hands are not needed any more.
    Superseded,
}

impl Acting {
    /// Lays a group out. Its buffer holds fewer than twice `flush_runs` runs.
    pub fn new(group: Group, flush_runs: u64) -> Self {
        let state = State {
            turn: 0,
            position: 0,
            begun: false,
            since: Instant::now(),
            collected_to: 0,
            settled_to: 0,
            buffer: Buffer::default(),
            experience: Experience::default(),
            halted: false,
        };
        let full_at = flush_runs.saturating_mul(2).saturating_sub(1).max(1);
        Self { group, full_at, state: Mutex::new(state), collected: Condvar::new() }
    }

    /// The group.
    pub fn group(&self) -> &Group {
        &self.group
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds the lock")
    }

    fn len(&self) -> u64 {
        self.group.lease.items.len()
    }

    /// The next run, if there is one to begin, and the turn to record it and its followers with.
    pub fn begin(&self, now: Instant) -> Option<(RetryItem, u32)> {
        let mut state = self.state();
        if state.halted || state.position == self.len() || state.begun {
            return None;
        }
        state.begun = true;
        state.since = now;
        Some((self.group.lease.items.nth(state.position), state.turn))
    }

    /// The run that was begun and those after it, at most so many.
    pub fn upcoming(&self, most: usize) -> Vec<RetryItem> {
        let position = self.state().position;
        let end = self.len().min(position.saturating_add(most.max(1) as u64));
        (position..end).map(|position| self.group.lease.items.nth(position)).collect()
    }

    /// Records the run that was begun in `turn`, and begins the next one if nothing is in the way.
    pub fn record(&self, turn: u32, acted: Acted<'_>, now: Instant) -> Next {
        let mut state = self.state();
        if state.turn != turn {
            return Next::Superseded;
        }
        self.conclude(&mut state, acted, now);
        if state.halted || state.position == self.len() {
            Next::End
        } else if self.is_full(&state) {
            Next::Wait
        } else {
            state.begun = true;
            let item = self.group.lease.items.nth(state.position);
            Next::Go { item, waiting: state.position - state.collected_to }
        }
    }

    fn conclude(&self, state: &mut State, acted: Acted<'_>, now: Instant) {
        let item = self.group.lease.items.nth(state.position);
        let buffer = &mut state.buffer;
        match acted {
            Ok(Yield { result, emitted }) => {
                buffer.aggregates.add(item.index, result, emitted);
                if self.group.batch.keep.keeps(item.index, self.group.batch.runs) {
                    buffer.page.push(item.index, result);
                }
            }
            Err(error) => buffer.fail(failed(&self.group, item, error)),
        }
        buffer.oldest.get_or_insert(now);
        state.begun = false;
        state.count_time(now);
        state.experience.runs += 1;
        state.position += 1;
    }

    /// Takes the next run back that recording has begun: another call begins it.
    pub fn rest_begun(&self) {
        self.state().begun = false;
    }

    /// Counts the time since the last run was recorded, before the hands rest.
    pub fn pause(&self, now: Instant) {
        self.state().count_time(now);
    }

    fn is_full(&self, state: &State) -> bool {
        state.position - state.collected_to >= self.full_at
            || state.buffer.bytes() >= MAX_PAGE_BYTES
    }

    /// Blocks while the buffer is full.
    pub fn wait_until_collected(&self) {
        let state = self.state();
        let full = |state: &mut State| self.is_full(state) && !state.halted;
        let woken = self.collected.wait_while(state, full);
        drop(woken.expect("nothing panics while it holds the lock"));
    }

    /// Whether the buffer is full.
    pub fn must_wait(&self) -> bool {
        let state = self.state();
        self.is_full(&state) && !state.halted
    }

    /// Which item is being acted on.
    pub fn in_progress(&self) -> Option<u64> {
        let state = self.state();
        state.begun.then_some(state.position)
    }

    /// If `hung` is still being acted on, gives it the verdict of a time-out and takes it from the
    /// hands that are on it. The group can then be begun by others.
    pub fn take_over(&self, hung: u64, limit: Duration, now: Instant) -> bool {
        let mut state = self.state();
        let hung = state.begun && state.position == hung;
        if hung {
            state.turn += 1;
            let error = RunError::new(format!("timed out: the run takes longer than {limit:?}"));
            self.conclude(&mut state, Err(error), now);
        }
        hung
    }

    /// Begins no further run.
    pub fn halt(&self) {
        self.state().halted = true;
        self.collected.notify_all();
    }

    /// Whether every run has its verdict.
    pub fn is_finished(&self) -> bool {
        self.state().position == self.len()
    }

    /// How long runs took, unless that was asked before.
    pub fn batch_experience(&self) -> Option<(BatchId, Experience)> {
        let experience = std::mem::take(&mut self.state().experience);
        (experience.runs > 0).then_some((self.group.lease.batch, experience))
    }

    /// Runs waiting to be settled, and since when.
    pub fn waiting(&self) -> (u64, Option<Instant>) {
        let state = self.state();
        (state.position - state.collected_to, state.buffer.oldest)
    }

    /// Moves out what is finished.
    pub fn collect(&self) -> Option<Outcome> {
        let mut state = self.state();
        if state.position == state.collected_to {
            return None;
        }
        let buffer = std::mem::take(&mut state.buffer);
        let lease = &self.group.lease;
        let progress = Progress::of(&lease.items, state.collected_to, state.position);
        state.collected_to = state.position;
        self.collected.notify_all();
        Some(Outcome {
            batch: lease.batch,
            fence: lease.fence,
            progress,
            page: buffer.page.build(),
            aggregates: buffer.aggregates,
            failed: buffer.failed,
            finished: state.position == self.len(),
        })
    }

    /// Takes note that the next `runs` collected runs are durable.
    pub fn settled(&self, runs: u64) {
        self.state().settled_to += runs;
    }

    /// The lease on what is not settled yet.
    pub fn rest(&self) -> Held {
        let state = self.state();
        let from = state.settled_to;
        let items = match &self.group.lease.items {
            Items::Range(range) => Items::Range(Range::new(range.lo + from, range.hi)),
            Items::Retries(items) => Items::Retries(items[from as usize..].to_vec()),
        };
        let settling = state.collected_to > from;
        Held { lease: Lease { items, ..self.group.lease.clone() }, settling }
    }
}
