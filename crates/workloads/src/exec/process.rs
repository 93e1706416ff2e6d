//! One running program. Threads of its own read and write its streams, so that whoever asks it
//! can stop waiting at any time.

use super::{live, program::Program, protocol::Answer, stderr::Stderr};
use std::{
    io::{self, BufRead, BufReader, Read, Write},
    process::{Child, ExitStatus},
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender},
    thread,
    time::{Duration, Instant},
};
use tidegate_core::{RunError, limits::MAX_RESULT_BYTES};

/// Longest line: a result of the largest size, with all its numbers and categories.
const MAX_LINE_BYTES: usize = MAX_RESULT_BYTES + (512 << 10);

/// Lines that wait to be read. A program has one run at a time; more is chatter.
const LINES_AHEAD: usize = 4;

/// How long a process whose streams are closed may take to exit and thereby say why.
const EXIT_GRACE: Duration = Duration::from_millis(500);

/// A running program. Ends with this value, and so does all that it started.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    requests: Sender<Vec<u8>>,
    heard: Receiver<Heard>,
    stderr: Stderr,
}

#[derive(Debug)]
enum Heard {
    Line(Vec<u8>),
    TooLong,
    Closed(&'static str),
}

/// Why a process gave no answer. It is of no further use.
#[derive(Debug)]
pub enum Failure {
    /// It ended, or closed its streams.
    Gone(RunError),
    /// It is too slow, or does not speak the protocol.
    Unfit(RunError),
}

impl Process {
    /// Starts the program and hands it the snapshot.
    pub fn start(program: &Program, greeting: Vec<u8>) -> Result<Self, RunError> {
        let name = program.name();
        let failed = |error: io::Error| RunError::new(format!("cannot start `{name}`: {error}"));
        let mut child = live::start(&mut program.command()).map_err(failed)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let stderr = child.stderr.take();
        let (says, heard) = mpsc::sync_channel(LINES_AHEAD);
        let (requests, wanted) = mpsc::channel();
        let stdin = stdin.expect("the command pipes stdin");
        let stdout = stdout.expect("the command pipes stdout");
        let stderr = Stderr::follow(stderr.expect("the command pipes stderr"));
        let closed = says.clone();
        thread::spawn(move || write_lines(stdin, &wanted, &closed));
        thread::spawn(move || read_lines(stdout, &says));
        let process = Self { name, child, requests, heard, stderr };
        process.send(greeting);
        Ok(process)
    }

    /// Whether it has neither ended nor said anything unasked.
    pub fn is_idle(&mut self) -> bool {
        self.heard.try_recv().is_err() && matches!(self.child.try_wait(), Ok(None))
    }

    /// Asks for run `index` and waits for the answer, until `deadline`.
    pub fn ask(
        &mut self,
        request: &[u8],
        deadline: Option<Instant>,
        index: u64,
    ) -> Result<Answer, Failure> {
        self.send(request.to_vec());
        match self.hear(deadline) {
            Ok(Heard::Line(line)) => {
                Answer::read(&line, index).map_err(|problem| self.unfit(&problem))
            }
            Ok(Heard::TooLong) => {
                Err(self.unfit(&format!("answered more than {MAX_LINE_BYTES} bytes in one line")))
            }
            Ok(Heard::Closed(stream)) => Err(self.gone(stream)),
            Err(RecvTimeoutError::Timeout) => Err(self.unfit("timed out")),
            Err(RecvTimeoutError::Disconnected) => Err(self.gone("its streams")),
        }
    }

    /// A request that cannot be sent is noticed by the closed stream that is heard next.
    fn send(&self, line: Vec<u8>) {
        let _ = self.requests.send(line);
    }

    fn hear(&self, deadline: Option<Instant>) -> Result<Heard, RecvTimeoutError> {
        match deadline {
            Some(end) => self.heard.recv_timeout(end.saturating_duration_since(Instant::now())),
            None => self.heard.recv().map_err(RecvTimeoutError::from),
        }
    }

    fn gone(&mut self, stream: &str) -> Failure {
        Failure::Gone(match self.wait(EXIT_GRACE) {
            Some(status) => self.error(&format!("ended without an answer, {status}")),
            None => self.error(&format!("closed {stream} without an answer")),
        })
    }

    fn unfit(&mut self, problem: &str) -> Failure {
        Failure::Unfit(self.error(problem))
    }

    fn error(&mut self, problem: &str) -> RunError {
        live::end(&mut self.child);
        let reason = format!("`{}` {problem}", self.name);
        match self.stderr.last_words() {
            words if words.is_empty() => RunError::new(reason),
            words => RunError::new(format!("{reason}; stderr: {words}")),
        }
    }

    fn wait(&mut self, time: Duration) -> Option<ExitStatus> {
        let end = Instant::now() + time;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < end => thread::sleep(Duration::from_millis(1)),
                _ => return None,
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        live::end(&mut self.child);
    }
}

fn write_lines(mut stdin: impl Write, wanted: &Receiver<Vec<u8>>, closed: &SyncSender<Heard>) {
    while let Ok(line) = wanted.recv() {
        if stdin.write_all(&line).and_then(|()| stdin.flush()).is_err() {
            let _ = closed.send(Heard::Closed("its stdin"));
            return;
        }
    }
}

fn read_lines(stdout: impl Read, says: &SyncSender<Heard>) {
    let mut stdout = BufReader::new(stdout);
    loop {
        let heard = read_line(&mut stdout);
        let closed = matches!(heard, Heard::Closed(_));
        if says.send(heard).is_err() || closed {
            return;
        }
    }
}

fn read_line(stdout: &mut impl BufRead) -> Heard {
    let mut line = Vec::new();
    match stdout.take(MAX_LINE_BYTES as u64 + 1).read_until(b'\n', &mut line) {
        Ok(1..) if line.len() > MAX_LINE_BYTES => Heard::TooLong,
        Ok(1..) => Heard::Line(line),
        _ => Heard::Closed("its stdout"),
    }
}
