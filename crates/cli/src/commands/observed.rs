//! Noticing that a workload fails from the start, so that it is said at once, and not after an hour of
//! retries.

use crate::out;
use std::{
    any::Any,
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::pin,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use tidegate::{
    AnyWorkload, InvalidSnapshot, Run, RunError, Snapshot, Stop, Workloads, workload::Prepared,
};

/// So many failures that are alike, before any run has succeeded, have one cause. Fewer may be bad luck.
const ALIKE: u64 = 100;
/// For a program: it is usually the program that cannot start, and starting it takes its time.
const ALIKE_OF_PROGRAM: u64 = 10;
/// So many times as many end it if they are not alike: reasons may hold what differs from run to run.
const UNLIKE: u64 = 10;
/// Reasons that are named if they are not alike.
const NAMED: usize = 3;
/// A program that has not answered for so long may not know that it should.
const NO_ANSWER: Duration = Duration::from_secs(10);

/// What is known about the runs of a command.
pub struct Observer {
    /// Says nothing itself.
    quiet: bool,
    /// Asked for when so many failures are all the same; `None`: never.
    stop: Option<(Stop, u64)>,
    /// Nothing more is observed then.
    succeeded: AtomicBool,
    /// The first run that a program was given, and when.
    asked: OnceLock<(u64, Instant)>,
    failures: Mutex<Failures>,
}

#[derive(Default)]
struct Failures {
    count: u64,
    /// The reason of the first failure, in the form in which reasons are compared.
    shape: Option<String>,
    differ: bool,
    /// The latest ones, without those that look like another.
    latest: VecDeque<String>,
    /// They were too many.
    given_up: bool,
}

impl Observer {
    /// Observes from now on.
    pub fn new(quiet: bool, stop: Option<(Stop, u64)>) -> Arc<Self> {
        let (succeeded, failures) = (AtomicBool::new(false), Mutex::default());
        Arc::new(Self { quiet, stop, succeeded, asked: OnceLock::new(), failures })
    }

    /// How many failures that are alike end a run of this workload.
    pub fn most_alike(workload: &str) -> u64 {
        if is_program(workload) { ALIKE_OF_PROGRAM } else { ALIKE }
    }

    /// The same workloads, observed.
    pub fn observe(self: &Arc<Self>, workloads: &Workloads) -> Workloads {
        workloads.iter().fold(Workloads::new(), |all, workload| {
            all.with(Observed { workload: workload.clone(), observer: self.clone() })
        })
    }

    /// Does the work, and says once if a program does not answer.
    pub async fn watch<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return done,
            silent = self.silence() => {
                if !self.quiet {
                    out::note(&silent);
                }
            }
        }
        work.await
    }

    /// Ends when a program has not answered to its first run for long, with what to say.
    async fn silence(&self) -> String {
        loop {
            tokio::time::sleep(NO_ANSWER / 10).await;
            if let Some(run) = self.unanswered(Instant::now()) {
                return format!(
                    "no answer to run {run} for {} s: a program reads one line per run and answers with one, \
                     unbuffered",
                    NO_ANSWER.as_secs()
                );
            }
        }
    }

    fn unanswered(&self, now: Instant) -> Option<u64> {
        let (run, since) = self.asked.get()?;
        let failed = self.failures.lock().is_ok_and(|failures| failures.count > 0);
        let is_silent = !self.succeeded.load(Relaxed) && !failed;
        (is_silent && now.duration_since(*since) >= NO_ANSWER).then_some(*run)
    }

    /// Why runs were given up, if they were.
    pub fn given_up(&self) -> Option<String> {
        let failures = self.failures.lock().ok().filter(|failures| failures.given_up)?;
        let count = failures.count;
        let reasons = failures.latest.iter().map(String::as_str).collect::<Vec<_>>().join("; ");
        let how = if failures.differ { "the latest failed with" } else { "all failed alike" };
        Some(format!("none of the first {count} runs succeeded, {how}: {reasons}"))
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
        if failures.count == 0 && !self.quiet {
            out::note(&format!("run {index} failed: {reason}"));
        }
        failures.add(reason);
        if let Some((stop, most)) = &self.stop
            && failures.count >= if failures.differ { most * UNLIKE } else { *most }
        {
            failures.given_up = true;
            stop.stop();
        }
    }
}

impl Failures {
    fn add(&mut self, reason: String) {
        self.count += 1;
        let shape = shape(&reason);
        match &self.shape {
            None => self.shape = Some(shape.clone()),
            Some(first) => self.differ |= *first != shape,
        }
        // The first of those that are alike is the one that was shown.
        if self.latest.iter().any(|known| self::shape(known) == shape) {
            return;
        }
        self.latest.push_back(reason);
        if self.latest.len() > NAMED {
            self.latest.pop_front();
        }
    }
}

fn is_program(workload: &str) -> bool {
    workload.starts_with("exec:")
}

/// A reason without the words that differ from run to run: numbers, addresses in memory, UUIDs.
fn shape(reason: &str) -> String {
    let words = reason.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '_');
    let is_hash = |word: &str| word.len() >= 8 && word.chars().all(|c| c.is_ascii_hexdigit());
    let kept = words.filter(|word| !word.contains(|c: char| c.is_ascii_digit()) && !is_hash(word));
    kept.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

struct Observed {
    workload: Arc<dyn AnyWorkload>,
    observer: Arc<Observer>,
}

struct Watched {
    prepared: Arc<dyn Prepared>,
    observer: Arc<Observer>,
    is_program: bool,
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
        let is_program = is_program(self.workload.name());
        Ok(Arc::new(Watched { prepared, observer: self.observer.clone(), is_program }))
    }
}

impl Prepared for Watched {
    fn run(&self, run: &mut Run, result: &mut Vec<u8>) -> Result<(), RunError> {
        let index = run.index();
        if self.is_program {
            self.observer.asked.get_or_init(|| (index, Instant::now()));
        }
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

    #[test]
    fn reasons_with_names_of_their_own_are_alike() {
        let alike = [
            |i: u64| format!("<object at 0x7f98{i:x}> is no number"),
            |i: u64| format!("no row 6f9619ff-8b86-d011-b42d-{i:012x}"),
            |i: u64| format!("checksum {} differs", "abcdefab".repeat(i as usize % 3 + 1)),
        ];
        for reason in alike {
            assert!(given_up((0..ALIKE).map(|i| Some(reason(i)))), "{}", reason(1));
        }
    }

    #[test]
    fn failures_for_any_reasons_end_it_in_the_end_and_the_latest_are_named() {
        let word =
            |i: u64| char::from(b'a' + (i % 26) as u8).to_string().repeat(i as usize / 26 + 1);
        let stop = Stop::new();
        let observer = Observer::new(true, Some((stop.clone(), ALIKE_OF_PROGRAM)));
        for i in 0..UNLIKE * ALIKE_OF_PROGRAM {
            assert!(!stop.is_stopped(), "{i}");
            observer.fail(i, &word(i));
        }
        let reason = observer.given_up().unwrap();
        assert!(reason.contains("none of the first 100 runs succeeded"), "{reason}");
        assert!(reason.contains(&word(99)) && reason.contains(&word(97)), "{reason}");
    }

    #[test]
    fn a_program_that_does_not_answer_is_told_of() {
        let start = Instant::now();
        let begun = || {
            let observer = Observer::new(true, None);
            observer.asked.set((7, start)).unwrap();
            observer
        };
        let silent = begun();
        assert_eq!(silent.unanswered(start + NO_ANSWER / 2), None);
        assert_eq!(silent.unanswered(start + NO_ANSWER), Some(7));
        silent.succeed();
        assert_eq!(silent.unanswered(start + NO_ANSWER), None);
        let failing = begun();
        failing.fail(7, "no such file");
        assert_eq!(failing.unanswered(start + NO_ANSWER), None);
        assert_eq!(Observer::new(true, None).unanswered(start + NO_ANSWER), None, "nobody asked");
    }
}
