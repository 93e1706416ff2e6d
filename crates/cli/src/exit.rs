//! How the process ends: stable exit codes, and one line on stderr for an error.

use crate::out;
use anyhow::Error;
use std::{io, process::ExitCode};
use tidegate::BatchState;

/// What the help says about exit codes.
pub const CODES: &str = "\
Exit codes:
  0    done
  1    error
  2    wrong usage
  3    completed with failures: some runs, records or messages are dead, a receiver is gone,
       or nothing was taken for the time of --give-up-after
  130  stopped by Ctrl-C (143: by SIGTERM); what was settled stays";

/// How a command ended, if not by an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All is well.
    Done,
    /// The command did what it should, and the answer is no.
    No,
    /// All is done, but some of it is dead.
    Failures,
    /// By a signal, with its exit code.
    Stopped(u8),
}

impl Exit {
    /// How a command ends that saw a batch through.
    pub fn of(state: BatchState) -> Self {
        match state {
            BatchState::Running | BatchState::Completed => Exit::Done,
            BatchState::CompletedWithFailures => Exit::Failures,
            BatchState::Cancelled => Exit::No,
        }
    }
}

impl From<Exit> for u8 {
    fn from(exit: Exit) -> u8 {
        match exit {
            Exit::Done => 0,
            Exit::No => 1,
            Exit::Failures => 3,
            Exit::Stopped(code) => code,
        }
    }
}

/// The exit code of a command; an error is shown.
pub fn code(outcome: anyhow::Result<Exit>) -> ExitCode {
    match outcome {
        Ok(exit) => ExitCode::from(u8::from(exit)),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            out::note(&format!("{} {}", out::alarm("error:"), one_line(&error)));
            ExitCode::FAILURE
        }
    }
}

/// Who reads our output has had enough, as `head` does.
fn is_broken_pipe(error: &Error) -> bool {
    let broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.downcast_ref().is_some_and(broken)
}

/// The error and its causes; a cause that was named already is left out.
fn one_line(error: &Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(|cause| join_lines(&cause.to_string())) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

fn join_lines(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn an_error_is_one_line_without_repetition() {
        let error = anyhow!("disk full\n").context("settle: disk full").context("work\non batch 1");
        assert_eq!(one_line(&error), "work; on batch 1: settle: disk full");
    }

    #[test]
    fn a_reader_that_has_had_enough_is_no_error() {
        let pipe = io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(is_broken_pipe(&Error::from(pipe).context("write")));
        assert!(!is_broken_pipe(&anyhow!("write")));
    }
}
