//! Lines on standard output, for whoever reads it.
//!
//! Done means that the line was handed over: whether the reader has made anything of it is not
//! known. The lines are those of the file sink.

mod config;

pub use config::Config;

use crate::{ConfigError, failure::Failure, line, status::all};
use async_trait::async_trait;
use std::{
    fmt,
    io::{self, ErrorKind, Write},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tidegate_core::sink::{
    Answer, Delivery, Hint, Item, Outcome, Sink, SinkCapabilities, SinkError, Verdict,
};
use tokio::{task::spawn_blocking, time::timeout};

/// Delivers to standard output, or to anything that can be written to.
pub struct Stdout {
    out: Arc<Mutex<Out>>,
    timeout: Duration,
    capabilities: SinkCapabilities,
}

struct Out {
    writer: Box<dyn Write + Send>,
    /// Whether the last write failed, perhaps in the middle of a line.
    torn: bool,
}

impl Stdout {
    /// A sink as declared. Nothing is written.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        Self::over(config, Box::new(io::stdout()))
    }

    /// The same over another writer.
    pub fn over(config: &Config, writer: Box<dyn Write + Send>) -> Result<Self, ConfigError> {
        let capabilities = SinkCapabilities {
            name: "stdout",
            connections: vec!["main".to_owned()],
            operation: "write".to_owned(),
            max_group: config.max_group()?,
            mixes_topics: true,
            budgets: Vec::new(),
        };
        let out = Arc::new(Mutex::new(Out { writer, torn: false }));
        Ok(Self { out, timeout: config.timeout()?, capabilities })
    }

    async fn write(&self, lines: Vec<u8>) -> Result<(), Outcome> {
        let out = Arc::clone(&self.out);
        // A reader that does not read makes a pipe block; the lines may come through after that.
        let task = spawn_blocking(move || {
            out.lock().unwrap_or_else(PoisonError::into_inner).write(&lines)
        });
        match timeout(self.timeout, task).await {
            Ok(Ok(result)) => result.map_err(|error| judge(&error)),
            Ok(Err(panic)) => Err(Outcome::Unavailable(format!("the writer ended: {panic}"))),
            Err(_) => Err(Outcome::TimedOut),
        }
    }
}

impl Out {
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.torn {
            self.writer.write_all(b"\n")?;
        }
        self.torn = true;
        self.writer.write_all(lines)?;
        self.writer.flush()?;
        self.torn = false;
        Ok(())
    }
}

impl fmt::Debug for Stdout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdout").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

fn judge(error: &io::Error) -> Outcome {
    match error.kind() {
        ErrorKind::BrokenPipe => {
            Outcome::Broken("nobody reads standard output any more".to_owned())
        }
        _ => Outcome::Unavailable(format!("standard output cannot be written: {error}")),
    }
}

/// The lines of all items, or what is wrong with one of them.
fn lines(items: &[Item<'_>]) -> Result<Vec<u8>, String> {
    let mut lines = Vec::new();
    items.iter().try_for_each(|item| line::push(&mut lines, item))?;
    Ok(lines)
}

#[async_trait]
impl Sink for Stdout {
    fn capabilities(&self) -> SinkCapabilities {
        self.capabilities.clone()
    }

    async fn check(&self) -> Result<Vec<Option<Duration>>, SinkError> {
        Ok(vec![None])
    }

    async fn deliver(&self, delivery: Delivery<'_>) -> Answer {
        if delivery.connection != 0 {
            let problem = format!("there is no connection {}", delivery.connection);
            return Failure::Broken(problem).into();
        }
        let outcome = match lines(delivery.items) {
            Ok(lines) => match self.write(lines).await {
                Ok(()) => all(delivery.items.len(), Verdict::Done),
                Err(outcome) => outcome,
            },
            Err(reason) => Outcome::Refused(reason),
        };
        Answer { outcome, hint: Hint::default() }
    }
}
