//! What `run` says at the end.

use crate::{
    app::App,
    exit::Exit,
    out,
    show::{self, failures, number, status},
    store,
};
use anyhow::Result;
use serde_json::json;
use std::time::Duration;
use tidegate::{
    Aggregates, BatchId, BatchState, ExceptionState, OpenStore, PhaseReport, inspect::BatchStatus,
};

/// A batch that `run` has worked on.
pub struct Ended<'a> {
    /// Where it is kept.
    pub store: &'a OpenStore,
    /// Which batch.
    pub id: BatchId,
    /// Where the worker's time went.
    pub phases: PhaseReport,
    /// How long it worked.
    pub time: Duration,
    /// Whether the batch was begun before.
    pub resumed: bool,
}

/// Shows what came of the batch. `signal`: the exit code of the signal that stopped it.
pub async fn run(app: &App, ended: Ended<'_>, signal: Option<u8>) -> Result<Exit> {
    let status = store::status(ended.store, ended.id).await?;
    let aggregates = ended.store.aggregates(ended.id).await?;
    if app.json {
        out::json(&ended.json(&status, &aggregates))?;
    } else {
        out::data(&text(&status, &aggregates))?;
    }
    ended.say_how_it_went(app, &status).await?;
    match signal {
        Some(code) if status.state == BatchState::Running => Ok(Exit::Stopped(code)),
        _ => Ok(Exit::of(status.state)),
    }
}

fn text(status: &BatchStatus, aggregates: &Aggregates) -> String {
    let shown = show::aggregates(aggregates, out::width());
    let digest = format!("digest {}\n", aggregates.digest);
    match (shown.is_empty(), status.state) {
        // What was stopped has no digest that anything could be compared with.
        (true, BatchState::Running) => String::new(),
        (false, BatchState::Running) => shown,
        (true, _) => digest,
        (false, _) => format!("{shown}\n{digest}"),
    }
}

impl Ended<'_> {
    fn per_second(&self) -> f64 {
        self.phases.settled_runs as f64 / self.time.as_secs_f64().max(1e-9)
    }

    fn json(&self, status: &BatchStatus, aggregates: &Aggregates) -> serde_json::Value {
        let more = json!({
            "resumed": self.resumed,
            "seconds": self.time.as_secs_f64(),
            "runs_per_second": self.per_second(),
            "digest": aggregates.digest.to_string(),
            "aggregates": aggregates.summary(),
            "phases": self.phases,
            "advice": (status.progress.completed > 0).then(|| self.phases.advice()),
            "store": store::kind(self.store),
        });
        status::json(status, more)
    }

    async fn say_how_it_went(&self, app: &App, status: &BatchStatus) -> Result<()> {
        let id = self.id;
        app.say(&format!(
            "batch {id} {}: {} in {} ({})",
            match status.state {
                BatchState::Running => "stopped",
                state => status::state(state),
            },
            status::progress(&status.progress, status.batch.runs),
            number::span(self.time),
            number::rate(self.per_second()),
        ));
        // Where the time went says nothing while every run fails.
        if status.progress.completed > 0 {
            app.say(&self.phases.lines().join("\n"));
        }
        match status.state {
            BatchState::Running => self.say_how_to_resume(app, status),
            BatchState::CompletedWithFailures => self.say_what_failed(app, status).await?,
            BatchState::Completed | BatchState::Cancelled => {}
        }
        Ok(())
    }

    fn say_how_to_resume(&self, app: &App, status: &BatchStatus) {
        if !self.store.capabilities().durable {
            return app.say("a memory: store ends with its process: there is nothing to resume");
        }
        let flag = app.address.flag();
        let exec = exec_flag(&status.batch.workload);
        app.say(&format!(
            "resume with the same command, or with `tidegate worker --until-idle{exec}{flag}`"
        ));
    }

    async fn say_what_failed(&self, app: &App, status: &BatchStatus) -> Result<()> {
        let id = self.id;
        let dead = failures::read(self.store, id, Some(ExceptionState::Dead)).await?;
        app.say(failures::text(id, &dead, status.progress.dead).trim_end());
        if !self.store.capabilities().durable {
            return Ok(());
        }
        let flag = app.address.flag();
        app.say(&format!(
            "list them with `tidegate batch results {id} --dead{flag}`, \
             run them again with `tidegate batch retry {id}{flag}`"
        ));
        Ok(())
    }
}

/// The flag that a worker needs for this workload.
pub fn exec_flag(workload: &str) -> String {
    let quote = |command: &str| shlex::try_quote(command).map(|q| q.into_owned()).ok();
    let command = workload.strip_prefix("exec:").and_then(quote);
    command.map(|command| format!(" --exec {command}")).unwrap_or_default()
}
