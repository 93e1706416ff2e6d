//! The running processes of one program and one snapshot: one per run at the same time.

use super::{
    process::{Failure, Process},
    program::Program,
    protocol::{self, Answer},
};
use std::{
    sync::{Mutex, PoisonError},
    time::Instant,
};
use tidegate_core::RunError;

/// Processes that wait for their next run. All end when this is dropped.
#[derive(Debug)]
pub struct Pool {
    program: Program,
    greeting: Vec<u8>,
    idle: Mutex<Vec<Process>>,
}

impl Pool {
    /// None running yet.
    pub fn new(program: Program, snapshot: &str) -> Self {
        Self { program, greeting: protocol::greeting(snapshot), idle: Mutex::default() }
    }

    /// Asks any process for run `index`. A process that fails is not asked again.
    pub fn ask(
        &self,
        request: &[u8],
        deadline: Option<Instant>,
        index: u64,
    ) -> Result<Answer, RunError> {
        if let Some(mut process) = self.take_idle() {
            match process.ask(request, deadline, index) {
                Ok(answer) => return Ok(self.put_back(process, answer)),
                Err(Failure::Unfit(error)) => return Err(error),
                // It may have ended after its last answer, before it saw this run.
                Err(Failure::Gone(_)) => {}
            }
        }
        let mut process = Process::start(&self.program, self.greeting.clone())?;
        match process.ask(request, deadline, index) {
            Ok(answer) => Ok(self.put_back(process, answer)),
            Err(Failure::Unfit(error) | Failure::Gone(error)) => Err(error),
        }
    }

    fn take_idle(&self) -> Option<Process> {
        loop {
            let mut process = self.idle().pop()?;
            if process.is_idle() {
                return Some(process);
            }
        }
    }

    fn put_back(&self, process: Process, answer: Answer) -> Answer {
        self.idle().push(process);
        answer
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Process>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
