//! `tidegate batch replay`: one run again, here, bit for bit.

use super::stored;
use crate::{app::App, commands::spec, exit::Exit, out, panics, show::number, store};
use anyhow::{Context, Result, anyhow, bail};
use serde::Serialize;
use serde_json::value::RawValue;
use std::{
    any::Any,
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
};
use tidegate::{
    Batch, BatchId, Exception, ExceptionState, OpenStore, Run, RunError, inspect::ExceptionQuery,
    load, run::Emitted, workload::Prepared,
};

/// Runs one run again and compares it with what is stored.
pub async fn run(app: &App, store: &OpenStore, run: &str, exec: Option<String>) -> Result<Exit> {
    let (id, index) = parse(run)?;
    let batch = store::status(store, id).await?.batch;
    if index >= batch.runs {
        bail!(
            "batch {id} has the runs 0 to {}; there is no run {}",
            batch.runs - 1,
            number::count(index)
        );
    }
    let prepared = prepare(store, &batch, exec).await?;
    let before = Before::read(store, &batch, index).await?;
    let replay = replay(batch.clone(), index, prepared)?;
    let agrees = before.agrees_with(&replay);
    out::json(&replay.printed(id, index, agrees))?;
    app.say(&format!("run {id}#{index}: {}", before.compare(&replay)));
    Ok(if agrees == Some(false) { Exit::No } else { Exit::Done })
}

fn parse(text: &str) -> Result<(BatchId, u64)> {
    let parts = text.split_once('#').and_then(|(batch, index)| {
        Some((batch.parse().ok()?, index.replace('_', "").parse().ok()?))
    });
    parts.ok_or_else(|| anyhow!("`{text}` is no run: write BATCH#INDEX, such as 3#4711"))
}

/// Programs are started only if they are named here too: a store must not decide what is executed.
async fn prepare(
    store: &OpenStore,
    batch: &Batch,
    exec: Option<String>,
) -> Result<Arc<dyn Prepared>> {
    if let Some(load) = load::about(store, batch).await? {
        bail!(
            "batch {} loads {} to {}: a record is not run again, only loaded with --again",
            batch.id,
            load.file,
            load.to
        );
    }
    let workloads = spec::registry(&exec)?;
    let name = &batch.workload;
    let workload = match (workloads.get(name), name.strip_prefix("exec:")) {
        (Some(workload), _) => workload,
        (None, Some(command)) => {
            let quoted = shlex::try_quote(command).unwrap_or(command.into());
            bail!("batch {} runs a program: allow it with --exec {quoted}", batch.id)
        }
        (None, None) => spec::find(&workloads, name)?,
    };
    let snapshot = store.snapshot(batch.snapshot).await?;
    let snapshot = snapshot.with_context(|| format!("the snapshot {} is gone", batch.snapshot))?;
    Ok(workload.prepare(&snapshot)?)
}

/// What is stored about the run.
enum Before {
    Result(Box<RawValue>),
    Dead(Exception),
    Nothing(String),
}

impl Before {
    async fn read(store: &OpenStore, batch: &Batch, index: u64) -> Result<Self> {
        let state = Some(ExceptionState::Dead);
        let query = ExceptionQuery { batch: batch.id, state, from: index, limit: 1 };
        let dead = store.exceptions(query).await?.into_iter().find(|dead| dead.index == index);
        if let Some(dead) = dead {
            return Ok(Before::Dead(dead));
        }
        if !batch.keep.keeps(index, batch.runs) {
            return Ok(Before::Nothing(format!("with --keep {} it is not stored", batch.keep)));
        }
        Ok(match stored::find(store, batch.id, index).await? {
            Some(result) => Before::Result(result),
            None => Before::Nothing("it is not settled yet".to_owned()),
        })
    }

    fn agrees_with(&self, replay: &Replay) -> Option<bool> {
        match (self, &replay.outcome) {
            (Before::Nothing(_), _) => None,
            (Before::Result(stored), Ok((result, _))) => Some(stored.get() == result.get()),
            (Before::Dead(_), Err(_)) => Some(true),
            _ => Some(false),
        }
    }

    fn compare(&self, replay: &Replay) -> String {
        match (self, &replay.outcome) {
            (Before::Nothing(why), _) => format!("nothing to compare with: {why}"),
            (Before::Result(stored), Ok((result, _))) => match stored.get() == result.get() {
                true => "identical to the stored result".to_owned(),
                false => format!("differs from the stored result: {}", stored.get()),
            },
            (Before::Result(_), Err(error)) => {
                format!("fails here ({error}), but a result is stored")
            }
            (Before::Dead(_), Err(_)) => "dead in the store, and fails here too".to_owned(),
            (Before::Dead(dead), Ok(_)) => {
                format!("succeeds here, but is dead in the store: {}", dead.reason)
            }
        }
    }
}

struct Replay {
    /// How many attempts failed before the last one.
    attempts: u32,
    outcome: Result<(Box<RawValue>, Emitted), RunError>,
}

/// The result is printed as it is: its bits are what a replay is about.
#[derive(Serialize)]
struct Printed<'a> {
    batch: BatchId,
    index: u64,
    attempts: u32,
    identical: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    numbers: BTreeMap<&'a str, Vec<f64>>,
    categories: BTreeMap<&'a str, Vec<&'a str>>,
}

impl Replay {
    fn printed(&self, batch: BatchId, index: u64, identical: Option<bool>) -> Printed<'_> {
        let done = self.outcome.as_ref().ok();
        let emitted = done.map(|(_, emitted)| emitted);
        let numbers = emitted.into_iter().flat_map(Emitted::numbers);
        let categories = emitted.into_iter().flat_map(Emitted::categories);
        Printed {
            batch,
            index,
            attempts: self.attempts,
            identical,
            error: self.outcome.as_ref().err().map(|error| error.reason.as_str()),
            result: done.map(|(result, _)| &**result),
            numbers: by_name(numbers),
            categories: by_name(categories),
        }
    }
}

/// A run may emit a name more than once.
fn by_name<'a, T>(emitted: impl Iterator<Item = (&'a str, T)>) -> BTreeMap<&'a str, Vec<T>> {
    let mut names: BTreeMap<&str, Vec<T>> = BTreeMap::new();
    emitted.for_each(|(name, value)| names.entry(name).or_default().push(value));
    names
}

/// Attempts the run as a worker would, without its pauses. On a thread of its own, as there.
fn replay(batch: Batch, index: u64, prepared: Arc<dyn Prepared>) -> Result<Replay> {
    let act = move || {
        let mut attempts = 0;
        loop {
            let outcome = attempt(&batch, index, attempts, &*prepared);
            let again = outcome.as_ref().is_err_and(|error| !error.permanent);
            if !again || attempts + 1 >= batch.retry.max_attempts {
                return Replay { attempts, outcome };
            }
            attempts += 1;
        }
    };
    let thread = thread::Builder::new().name(panics::ACTING.to_owned()).spawn(act)?;
    thread.join().map_err(|_| anyhow!("the replay ended by itself"))
}

fn attempt(
    batch: &Batch,
    index: u64,
    attempts: u32,
    prepared: &dyn Prepared,
) -> Result<(Box<RawValue>, Emitted), RunError> {
    let mut run = Run::new(batch.seed, index);
    run.after(attempts).within(batch.timeout);
    let mut result = Vec::new();
    catch_unwind(AssertUnwindSafe(|| prepared.run(&mut run, &mut result)))
        .unwrap_or_else(|panic| Err(RunError::new(format!("panicked: {}", message(&*panic)))))?;
    let emitted = run.finish()?.clone();
    let result = serde_json::from_slice(&result)
        .map_err(|error| RunError::permanent(format!("the result is no JSON: {error}")))?;
    Ok((result, emitted))
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}
