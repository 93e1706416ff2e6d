//! From flags to a checked batch. Nothing is opened and nothing is written here.

use crate::{app::App, args::BatchFlags, snapshot, suggest::did_you_mean};
use anyhow::{Result, anyhow};
use std::sync::Arc;
use tidegate::{
    AnyWorkload, BatchSpec, Workloads,
    submit::NewBatch,
    workloads::{Exec, builtin},
};

/// The workloads of this process: the built-in ones and these programs.
pub fn registry<'a>(programs: impl IntoIterator<Item = &'a String>) -> Result<Workloads> {
    programs.into_iter().try_fold(builtin(), |workloads, command| {
        let program = Exec::new(command).map_err(|error| anyhow!("--exec: {error}"))?;
        Ok(workloads.with(program))
    })
}

/// A workload by its name; a typo gets a suggestion.
pub fn find(workloads: &Workloads, name: &str) -> Result<Arc<dyn AnyWorkload>> {
    workloads.get(name).ok_or_else(|| {
        let hint = did_you_mean(name, workloads.names());
        anyhow!("there is no workload `{name}`{hint} (see `tidegate workload list`)")
    })
}

/// The batch that the flags describe, checked by its workload.
pub fn check(app: &App, flags: &BatchFlags, workloads: &Workloads) -> Result<NewBatch> {
    let name = match (&flags.exec, &flags.workload) {
        (Some(command), _) => format!("exec:{command}"),
        (None, Some(name)) => name.clone(),
        (None, None) => return Err(anyhow!("name a workload, or a program with --exec")),
    };
    let workload = find(workloads, &name)?;
    let mut spec = BatchSpec::new(name, flags.runs);
    spec.seed = flags.seed;
    spec.snapshot = match &flags.snapshot {
        Some(path) => snapshot::read(path)?,
        None => snapshot::example(&*workload)?,
    };
    spec.keep = flags.keep.or(app.config.keep).unwrap_or_default();
    if let Some(timeout) = flags.timeout.or(app.config.timeout) {
        spec.timeout = timeout.0;
    }
    if let Some(attempts) = flags.max_attempts.or(app.config.max_attempts) {
        spec.retry.max_attempts = attempts;
    }
    Ok(spec.check(workloads)?)
}
