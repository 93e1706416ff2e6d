//! Noticing that a workload fails from the start, so that it is said at once, and not after an hour of
//! retries.

use crate::out;
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};
use tidegate::{
    AnyWorkload, InvalidSnapshot, Run, RunError, Snapshot, Stop, Workloads, workload::Prepared,
};

/// So many failures that are alike, before any run has succeeded, have one cause. Fewer may be bad luck.
const ALIKE: u64 = 100;
/// For a program: it is usually the program that cannot start, and starting it takes its time.
const ALIKE_OF_PROGRAM: u64 = 10;

/// What is known about the runs of a command.
pub struct Observer {
    /// Says nothing itself.
    quiet: bool,
    /// Asked for when so many failures are all the same; `None`: never.
    stop: Option<(Stop, u64)>,
    /// Nothing more is observed then.
    succeeded: AtomicBool,
    failures: Mutex<Failures>,
}

#[derive(Default)]
struct Failures {
    /// The first one.
    first: Option<String>,
    alike: u64,
    differ: bool,
    /// They were too many.
    given_up: bool,
}

impl Observer {
    /// Observes from now on.
    pub fn new(quiet: bool, stop: Option<(Stop, u64)>) -> Arc<Self> {
        let (succeeded, failures) = (AtomicBool::new(false), Mutex::default());
        Arc::new(Self { quiet, stop, succeeded, failures })
    }

    /// How many failures that are alike end a run of this workload.
    pub fn most_alike(workload: &str) -> u64 {
        if workload.starts_with("exec:") { ALIKE_OF_PROGRAM } else { ALIKE }
    }

    /// The same workloads, observed.
    pub fn observe(self: &Arc<Self>, workloads: &Workloads) -> Workloads {
        workloads.iter().fold(Workloads::new(), |all, workload| {
            all.with(Observed { workload: workload.clone(), observer: self.clone() })
        })
    }

    /// Why runs were given up, if they were.
    pub fn given_up(&self) -> Option<String> {
        let failures = self.failures.lock().ok()?;
        let reason = failures.first.as_ref().filter(|_| failures.given_up)?;
        let alike = failures.alike;
        Some(format!("none of the first {alike} runs succeeded, all failed alike: {reason}"))
    }

    fn succeed(&self) {
        if !self.succeeded.load(Relaxed) {
            self.succeeded.store(true, Relaxed);
        }
    }

    fn fail(&self, index: u64, reason: &str) {
        if self.succeeded.load(Relaxed) {
            return;
        }
        let Ok(mut failures) = self.failures.lock() else { return };
        let reason = out::harmless(&reason.lines().collect::<Vec<_>>().join("; "));
        match &failures.first {
            None => {
                if !self.quiet {
                    out::note(&format!("run {index} failed: {reason}"));
                }
                failures.first = Some(reason);
            }
            Some(first) => failures.differ |= without_numbers(first) != without_numbers(&reason),
        }
        failures.alike += 1;
        if let Some((stop, most)) = &self.stop
            && failures.alike >= *most
            && !failures.differ
        {
            failures.given_up = true;
            stop.stop();
        }
    }
}

/// Reasons may name the run, a process or a time.
fn without_numbers(reason: &str) -> String {
    reason.chars().filter(|c| !c.is_ascii_digit()).collect()
}

struct Observed {
    workload: Arc<dyn AnyWorkload>,
    observer: Arc<Observer>,
}

struct Watched {
    prepared: Arc<dyn Prepared>,
    observer: Arc<Observer>,
}

impl AnyWorkload for Observed {
    fn name(&self) -> &str {
        self.workload.name()
    }

    fn about(&self) -> &str {
        self.workload.about()
    }

    fn example(&self) -> &str {
        self.workload.example()
    }

    fn prepare(self: Arc<Self>, snapshot: &Snapshot) -> Result<Arc<dyn Prepared>, InvalidSnapshot> {
        let prepared = self.workload.clone().prepare(snapshot)?;
        Ok(Arc::new(Watched { prepared, observer: self.observer.clone() }))
    }
}

impl Prepared for Watched {
    fn run(&self, run: &mut Run, result: &mut Vec<u8>) -> Result<(), RunError> {
        let index = run.index();
        let ran = catch_unwind(AssertUnwindSafe(|| self.prepared.run(run, result)));
        match &ran {
            Ok(Ok(())) => self.observer.succeed(),
            // It was put off, and did not fail.
            Ok(Err(error)) if error.postponed.is_some() => {}
            Ok(Err(error)) => self.observer.fail(index, &error.reason),
            Err(panic) => self.observer.fail(index, &format!("panicked: {}", message(&**panic))),
        }
        ran.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether these runs are given up: each succeeds, or fails with a reason.
    fn given_up(runs: impl IntoIterator<Item = Option<String>>) -> bool {
        let stop = Stop::new();
        let observer = Observer::new(true, Some((stop.clone(), ALIKE)));
        for (index, run) in runs.into_iter().enumerate() {
            match run {
                None => observer.succeed(),
                Some(reason) => observer.fail(index as u64, &reason),
            }
        }
        assert_eq!(observer.given_up().is_some(), stop.is_stopped());
        stop.is_stopped()
    }

    #[test]
    fn only_one_failure_again_and_again_ends_it() {
        let alike = |n: u64| (0..n).map(|i| Some(format!("process {i}: no such file")));
        assert!(given_up(alike(ALIKE)));
        assert!(!given_up(alike(ALIKE - 1)));
        assert!(!given_up(alike(50).chain([None]).chain(alike(ALIKE))), "one has succeeded");
        let other = Some("another reason".to_owned());
        assert!(!given_up(alike(50).chain([other]).chain(alike(ALIKE))), "there are two reasons");
        let observer = Observer::new(true, None);
        (0..2 * ALIKE).for_each(|index| observer.fail(index, "no such file"));
        assert_eq!(observer.given_up(), None, "a worker goes on: it has other batches");
    }
}
