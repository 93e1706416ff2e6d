//! Any program as a workload.
//!
//! The program is started without a shell, kept running, and spoken to in lines of JSON: one line
//! per run on its stdin, one line per answer on its stdout. As many processes run as runs are
//! carried out at the same time.
//!
//! | direction | line |
//! |---|---|
//! | in, once  | `{"snapshot": <any JSON>}` |
//! | in        | `{"index": 7, "seed": "1234567890", "attempts": 0}` |
//! | out       | `{"index": 7, "result": <any JSON>, "numbers": {"points": 3.5}, "categories": {"winner": "red"}}` |
//! | or out    | `{"index": 7, "error": "no such tile", "permanent": true}` |
//!
//! `seed` is all the randomness of the run, a decimal string because it has 64 bits; a program that
//! draws from nothing else gives the same results on every machine. `attempts` is how many attempts
//! at this run have failed before. `result`, `numbers`, `categories` and `permanent` may be left
//! out. Answers must be flushed. What the program writes to stderr is shown when it fails. A
//! program that takes too long, exits or says something else fails the run at hand, and is started
//! anew for the next.
//!
//! ```python
#![doc = include_str!("../../examples/pi.py")]
//! ```

mod live;
mod pool;
mod process;
mod program;
mod protocol;
mod stderr;

use pool::Pool;
use program::Program;
use serde_json::value::RawValue;
use std::time::Instant;
use tidegate_core::{InvalidSnapshot, Run, RunError, Snapshot, Workload};

pub use live::end_all;
pub use program::ExecError;

/// A program that carries out runs. See the module's documentation for what it must speak.
#[derive(Debug)]
pub struct Exec {
    name: String,
    program: Program,
}

impl Exec {
    /// The program that `command` starts: split into words like a shell would, but without a
    /// shell. The program exists when this returns.
    pub fn new(command: &str) -> Result<Self, ExecError> {
        Ok(Self { name: format!("exec:{command}"), program: Program::find(command)? })
    }
}

impl Workload for Exec {
    type Prepared = Pool;
    type Output = Box<RawValue>;

    fn name(&self) -> &str {
        &self.name
    }

    fn about(&self) -> &str {
        "a program that answers on stdout, one line of JSON per run"
    }

    fn prepare(&self, snapshot: &Snapshot) -> Result<Pool, InvalidSnapshot> {
        Ok(Pool::new(self.program.clone(), snapshot.text()))
    }

    fn run(&self, pool: &Pool, run: &mut Run) -> Result<Box<RawValue>, RunError> {
        let deadline = run.timeout().map(|timeout| Instant::now() + timeout);
        let answer = pool.ask(&protocol::request(run), deadline, run.index())?;
        answer.take(run)
    }
}

#[cfg(test)]
mod tests;
