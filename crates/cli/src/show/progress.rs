//! Following a batch while others work on it: a bar on a terminal, lines elsewhere.

use super::{number, speed::Speed, status, table::by_count};
use crate::{app::App, out, store};
use anyhow::Result;
use indicatif::ProgressBar;
use std::time::{Duration, Instant};
use tidegate::{
    Aggregates, BatchId, BatchState, OpenStore,
    inspect::{BatchStatus, Progress},
};

/// Five times a second looks live.
const DRAWN: Duration = Duration::from_millis(200);
/// A log is read later.
const LOGGED: Duration = Duration::from_secs(10);
/// Looking must not take more than this share of the store's time.
const SHARE: u32 = 20;
/// Aggregates beside the bar.
const LEADING: usize = 4;

/// Shows how a batch goes on.
pub struct Follower<'a> {
    store: &'a OpenStore,
    batch: BatchId,
    speed: Speed,
    view: View,
}

enum View {
    Bar(ProgressBar),
    /// With the time of the last one.
    Lines(Option<Instant>),
    Nothing,
}

impl<'a> Follower<'a> {
    /// Follows a batch. `lines`: also where there is no terminal.
    pub fn new(app: &App, store: &'a OpenStore, status: &BatchStatus, lines: bool) -> Self {
        let view = match () {
            () if app.draws() => View::Bar(bar(status)),
            () if lines && !app.quiet => View::Lines(None),
            () => View::Nothing,
        };
        let speed = Speed::new(Instant::now(), done(status));
        Self { store, batch: status.batch.id, speed, view }
    }

    /// Shows the batch until it is closed.
    pub async fn until_closed(&mut self) -> Result<BatchStatus> {
        loop {
            let start = Instant::now();
            let status = store::status(self.store, self.batch).await?;
            if status.state != BatchState::Running {
                return Ok(status);
            }
            self.show(&status).await?;
            tokio::time::sleep(DRAWN.max(start.elapsed() * SHARE)).await;
        }
    }

    /// Shows the batch as long as it is asked. What cannot be read now may be read later: whoever
    /// works on the batch says what is wrong with the store.
    pub async fn forever(&mut self) -> std::convert::Infallible {
        loop {
            let _ = self.until_closed().await;
            tokio::time::sleep(DRAWN).await;
        }
    }

    async fn show(&mut self, status: &BatchStatus) -> Result<()> {
        self.speed.see(Instant::now(), done(status));
        match &mut self.view {
            View::Nothing => {}
            View::Lines(Some(last)) if last.elapsed() < LOGGED => {}
            View::Lines(last) => {
                *last = Some(Instant::now());
                let progress = status::progress(&status.progress, status.batch.runs);
                out::note(&format!("batch {}: {progress}", self.batch));
            }
            View::Bar(bar) => {
                bar.set_position(done(status));
                let going = going(&self.speed, status.batch.runs);
                bar.set_prefix(format!("{going}{}", trouble(&status.progress)));
                bar.set_message(leading(&self.store.aggregates(self.batch).await?));
            }
        }
        Ok(())
    }
}

impl Drop for Follower<'_> {
    fn drop(&mut self) {
        if let View::Bar(bar) = &self.view {
            bar.finish_and_clear();
        }
    }
}

fn bar(status: &BatchStatus) -> ProgressBar {
    let template = "{bar:32.cyan/dim} {percent:>3} %  {done}{prefix}\n{msg:.dim}";
    let runs = status.batch.runs;
    let style = out::bar_style(template, runs);
    out::BARS.add(ProgressBar::new(runs).with_style(style).with_position(done(status)))
}

fn done(status: &BatchStatus) -> u64 {
    status.progress.completed + status.progress.dead
}

/// How fast, and how long still, as far as that is known.
fn going(speed: &Speed, runs: u64) -> String {
    let rate = speed.per_second().map(|rate| format!("  {}", number::rate(rate)));
    let left = speed.left(runs).map(|left| format!("  {} left", number::span(left)));
    format!("{}{}", rate.unwrap_or_default(), left.unwrap_or_default())
}

fn trouble(progress: &Progress) -> String {
    let mut text = String::new();
    for (count, word) in [(progress.dead, "dead"), (progress.retrying, "retrying")] {
        if count > 0 {
            text += &format!("  {} {word}", number::count(count));
        }
    }
    text
}

/// What the aggregates say so far, in one line: who leads, and the first means.
fn leading(aggregates: &Aggregates) -> String {
    let shares = aggregates.categories.iter().take(1).flat_map(|(_, values)| {
        by_count(values).into_iter().take(LEADING).map(|(value, count)| {
            format!("{value} {:.0} %", count as f64 / aggregates.runs.max(1) as f64 * 100.0)
        })
    });
    let means = aggregates
        .numbers
        .iter()
        .map(|(name, series)| format!("{name} {}", number::figure(series.mean())));
    let name =
        aggregates.categories.keys().next().map(|name| format!("{name}: ")).unwrap_or_default();
    let parts: Vec<_> = shares.chain(means).take(LEADING).collect();
    format!("{name}{}", parts.join(" · "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate::Run;

    fn aggregates(emit: impl Fn(&mut Run)) -> Aggregates {
        let mut run = Run::new(1, 0);
        emit(&mut run);
        let mut aggregates = Aggregates::default();
        aggregates.add(0, b"null", run.finish().unwrap());
        aggregates
    }

    #[test]
    fn leaders_come_before_means() {
        let both = aggregates(|run| {
            run.category("winner", "Red");
            run.number("points/Red", 12.5);
        });
        assert_eq!(leading(&both), "winner: Red 100 % · points/Red 12.50");
        assert_eq!(leading(&aggregates(|run| run.number("pi", 3.0))), "pi 3");
        assert_eq!(leading(&Aggregates::default()), "");
    }
}
