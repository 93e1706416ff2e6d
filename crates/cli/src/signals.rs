//! Ctrl-C and SIGTERM: the first asks for a clean stop, the second ends at once.

use crate::out;
use anyhow::{Context, Result};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};
use tidegate::Stop;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals this close together are one wish: some tools signal a process and then its group.
const SAME: Duration = Duration::from_millis(300);

/// What a command that works on runs says to the first signal.
pub const STOPPING: &str = "Stopping after the runs in progress. Press Ctrl-C again to stop now.";

/// Listens for signals and passes them on.
#[derive(Clone)]
pub struct Signals {
    /// Asked for by the first signal.
    pub stop: Stop,
    code: Arc<AtomicU8>,
}

impl Signals {
    /// From now on signals no longer end the process by themselves. `answer` is said to the first.
    pub fn listen(answer: Option<&'static str>) -> Result<Self> {
        let handler = |kind| signal(kind).context("cannot listen for signals");
        let interrupts = handler(SignalKind::interrupt())?;
        let terminations = handler(SignalKind::terminate())?;
        let signals = Self { stop: Stop::new(), code: Arc::default() };
        tokio::spawn(signals.clone().pass_on(interrupts, terminations, answer));
        Ok(signals)
    }

    /// The exit code that the signal asks for, if there was one.
    pub fn code(&self) -> Option<u8> {
        Some(self.code.load(SeqCst)).filter(|code| *code != 0)
    }

    async fn pass_on(
        self,
        mut interrupts: Signal,
        mut terminations: Signal,
        answer: Option<&'static str>,
    ) {
        let mut first: Option<Instant> = None;
        loop {
            let code = tokio::select! {
                _ = interrupts.recv() => 128 + 2,
                _ = terminations.recv() => 128 + 15,
            };
            if let Some(first) = first {
                if first.elapsed() >= SAME {
                    tidegate::workloads::exec::end_all();
                    std::process::exit(code.into());
                }
                continue;
            }
            first = Some(Instant::now());
            self.code.store(code, SeqCst);
            answer.into_iter().for_each(out::note);
            self.stop.stop();
        }
    }
}
