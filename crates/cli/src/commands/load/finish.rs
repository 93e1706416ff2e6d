//! What `load` says at the end.

use super::{errors::ErrorsFile, per_second};
use crate::{
    app::App,
    exit::Exit,
    out,
    show::{number, status},
    store,
};
use anyhow::Result;
use serde_json::json;
use std::time::Duration;
use tidegate::{
    BatchState, OpenStore,
    inspect::BatchStatus,
    limits::MAX_LISTED,
    load::{Load, LoadReport, TakenUp},
};

/// The first dead records are named.
const NAMED: usize = 5;

/// A load that was worked on, or was done before.
pub struct Ended<'a> {
    pub store: &'a OpenStore,
    pub load: &'a Load,
    pub taken_up: TakenUp,
    pub report: Option<LoadReport>,
    pub time: Duration,
    /// Nothing was taken for longer than it was to wait.
    pub gave_up: bool,
}

impl Ended<'_> {
    /// Writes the errors file, and says what came of it all. `signal`: the exit code of the signal that
    /// stopped it.
    pub async fn finish(
        &self,
        app: &App,
        errors: Option<ErrorsFile>,
        signal: Option<u8>,
    ) -> Result<Exit> {
        let status = store::status(self.store, self.taken_up.status.batch.id).await?;
        let listed = errors.is_some();
        if let Some(file) = errors {
            self.write_errors(app, &status, file).await?;
        }
        if app.json {
            out::json(&self.json(&status))?;
        } else {
            out::data(&self.text(&status))?;
        }
        self.say_what_failed(app, &status, listed).await?;
        match signal {
            _ if self.gave_up && status.state == BatchState::Running => Ok(Exit::Failures),
            Some(code) if status.state == BatchState::Running => Ok(Exit::Stopped(code)),
            _ => Ok(Exit::of(status.state)),
        }
    }

    /// How many records were delivered since the command began.
    fn delivered(&self, status: &BatchStatus) -> u64 {
        status.progress.completed.saturating_sub(self.taken_up.status.progress.completed)
    }

    fn json(&self, status: &BatchStatus) -> serde_json::Value {
        let report = self.report.as_ref();
        let more = json!({
            "resumed": self.taken_up.resumed,
            "seconds": self.time.as_secs_f64(),
            "records_per_second": per_second(self.delivered(status), self.time),
            "sent": report.map(|report| report.sent),
            "pace": report.map(|report| &report.statistics),
            "malformed": self.load.records().malformed().count,
            "store": store::kind(self.store),
        });
        status::json(status, more)
    }

    fn text(&self, status: &BatchStatus) -> String {
        let progress = &status.progress;
        let mut text = format!(
            "load {} {}: {} of {} records delivered, {} dead\n",
            status.batch.id,
            match status.state {
                BatchState::Running => "stopped",
                state => status::state(state),
            },
            number::count(progress.completed),
            number::count(status.batch.runs),
            number::count(progress.dead),
        );
        if let Some(report) = &self.report {
            text += &self.how(report, self.delivered(status));
        }
        text
    }

    fn how(&self, report: &LoadReport, delivered: u64) -> String {
        let sent = &report.sent;
        let levels = report.statistics.iter().map(|s| s.limit.to_string()).collect::<Vec<_>>();
        format!(
            "{} in {} ({}), {} requests, {} throttled ({}), {} without answer; \
             {} in flight allowed at the end\n",
            number::count(delivered),
            number::span(self.time),
            number::rate(per_second(delivered, self.time)),
            number::count(sent.requests),
            number::count(sent.throttled),
            number::percent(sent.throttled, sent.requests),
            number::count(sent.timed_out + sent.unavailable),
            levels.join(" + "),
        )
    }

    async fn write_errors(
        &self,
        app: &App,
        status: &BatchStatus,
        mut file: ErrorsFile,
    ) -> Result<()> {
        let (mut from, mut count) = (0, 0);
        loop {
            let batch = status.batch.id;
            let dead = self.load.failures(self.store, batch, from, MAX_LISTED).await?;
            let Some(last) = dead.last() else { break };
            from = last.index + 1;
            count += dead.len() as u64;
            dead.iter().try_for_each(|failure| file.write(&failure.text))?;
        }
        if count > 0 {
            app.say(&format!("{} in {}", number::dead_records(count), file.path().display()));
        }
        file.finish()
    }

    async fn say_what_failed(&self, app: &App, status: &BatchStatus, listed: bool) -> Result<()> {
        if status.state == BatchState::Running {
            app.say("the same command goes on from here");
        }
        if status.progress.dead == 0 || listed {
            return Ok(());
        }
        let id = status.batch.id;
        for dead in self.load.failures(self.store, id, 0, NAMED).await? {
            app.say(&format!("  line {}: {}", number::count(dead.line), dead.reason));
        }
        app.say("the same command with --errors FILE writes all of them, to be loaded again;");
        app.say(&format!("`tidegate batch retry {id}` and the same command try them once more"));
        Ok(())
    }
}
