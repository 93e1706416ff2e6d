//! Following a load: how fast, how long still, and what holds it back.

use super::number;
use crate::{app::App, commands::load::per_second, out, store};
use indicatif::ProgressBar;
use std::{
    collections::VecDeque,
    convert::Infallible,
    time::{Duration, Instant},
};
use tidegate::{
    BatchId, OpenStore,
    inspect::BatchStatus,
    load::{LEASE, Load},
    pacer::{Binding, Statistics},
};

/// Often enough to look live, rarely enough to cost nothing.
const DRAWN: Duration = Duration::from_millis(250);
/// A log is read later.
const LOGGED: Duration = Duration::from_secs(10);
/// The recent past.
const RECENT: Duration = Duration::from_secs(30);

/// Shows how a load goes on: a bar on a terminal, a line now and then elsewhere.
pub struct Follower<'a> {
    store: &'a OpenStore,
    load: &'a Load,
    batch: BatchId,
    view: View,
    start: Instant,
    first: u64,
    recent: VecDeque<(Instant, u64)>,
}

enum View {
    Bar(ProgressBar),
    Lines(Instant),
    Nothing,
}

impl<'a> Follower<'a> {
    pub fn new(app: &App, store: &'a OpenStore, load: &'a Load, status: &BatchStatus) -> Self {
        let view = match () {
            () if app.draws() => View::Bar(bar(status.batch.runs)),
            () if !app.quiet => View::Lines(Instant::now()),
            () => View::Nothing,
        };
        let first = done(status);
        let (start, recent) = (Instant::now(), VecDeque::new());
        Self { store, load, batch: status.batch.id, view, start, first, recent }
    }

    /// Shows the load as long as it is asked. What cannot be read now may be read later.
    pub async fn forever(&mut self) -> Infallible {
        loop {
            if let Ok(status) = store::status(self.store, self.batch).await {
                self.show(&status);
            }
            tokio::time::sleep(DRAWN).await;
        }
    }

    fn show(&mut self, status: &BatchStatus) {
        let now = Instant::now();
        let done = done(status);
        self.recent.push_back((now, done));
        while self.recent.front().is_some_and(|(at, _)| now - *at > RECENT) {
            self.recent.pop_front();
        }
        match &mut self.view {
            View::Nothing => {}
            View::Lines(last) if last.elapsed() < LOGGED => {}
            View::Lines(last) => {
                *last = now;
                let (done, all) = (number::count(done), number::count(status.batch.runs));
                out::note(&format!(
                    "load {}: {done} of {all}, {}, {}",
                    self.batch,
                    self.speed(status),
                    self.pace(status)
                ));
            }
            View::Bar(bar) => {
                bar.set_position(done);
                let (speed, pace) = (self.speed(status), self.pace(status));
                if let View::Bar(bar) = &self.view {
                    bar.set_prefix(out::one_line(&speed));
                    bar.set_message(out::one_line(&pace));
                }
            }
        }
    }

    /// Overall, recently, and how long still.
    fn speed(&self, status: &BatchStatus) -> String {
        let done = done(status);
        let overall = per_second(done.saturating_sub(self.first), self.start.elapsed());
        let recent = self
            .recent
            .front()
            .map_or(0.0, |(at, then)| per_second(done.saturating_sub(*then), at.elapsed()));
        let left = status.batch.runs.saturating_sub(done) as f64 / recent;
        let left = Duration::try_from_secs_f64(left).ok().filter(|_| self.load.absence().is_none());
        let left = left.map(number::span);
        format!(
            "{} overall, {} in the last 30 s, {}",
            number::rate(overall),
            number::rate(recent),
            left.map_or("no end in sight".to_owned(), |left| format!("{left} left")),
        )
    }

    /// What is in flight, what was throttled, what binds.
    fn pace(&self, status: &BatchStatus) -> String {
        if let Some((reason, next)) = self.load.absence() {
            return format!("not there: {reason}; next try in {}", number::span(next));
        }
        let statistics = self.load.statistics();
        let sum = |of: fn(&Statistics) -> u32| statistics.iter().map(of).sum::<u32>();
        let sent = self.load.meter().sent();
        // Whoever has records in its hands waits for something, or has them in flight.
        let idle = statistics.iter().all(|of| of.in_flight == 0 && of.binding == Binding::Nothing);
        if idle && status.progress.untouched == 0 && status.progress.leased > 0 {
            return format!("waiting for {}", leased(status));
        }
        let binding = statistics.iter().map(|of| of.binding).find(|b| *b != Binding::Nothing);
        format!(
            "{} of {} in flight (at most {}) · {} throttled ({}) · bound by {}",
            sum(|of| of.in_flight),
            sum(|of| of.limit),
            sum(|of| of.max_parallelism),
            number::count(sent.throttled),
            number::percent(sent.throttled, sent.requests),
            binding.unwrap_or_default(),
        )
    }
}

impl Drop for Follower<'_> {
    fn drop(&mut self) {
        if let View::Bar(bar) = &self.view {
            bar.finish_and_clear();
        }
    }
}

/// What another process has in its hands. If it is gone, its leases end.
pub fn leased(status: &BatchStatus) -> String {
    format!(
        "{} leased by another process (free within {} s if it is gone)",
        number::records(status.progress.leased),
        LEASE.as_secs()
    )
}

fn done(status: &BatchStatus) -> u64 {
    status.progress.completed + status.progress.dead
}

fn bar(records: u64) -> ProgressBar {
    let template = "{bar:32.cyan/dim} {percent:>3} %  {done}\n{prefix}\n{msg:.dim}";
    out::BARS.add(ProgressBar::new(records).with_style(out::bar_style(template, records)))
}
