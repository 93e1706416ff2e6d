//! Lines at the end of a file.
//!
//! Done means that the line is on the disk, unless `sync` is off. A line may be there twice: files
//! recognize nothing. Half a line is never followed by another.

mod answer;
mod append;
mod config;
mod request;

pub use config::Config;

use crate::{ConfigError, failure::Failure, status::all};
use answer::judge;
use async_trait::async_trait;
use request::{Form, Lines};
use std::time::Duration;
use tidegate_core::sink::{
    Answer, Delivery, Hint, Item, Outcome, Sink, SinkCapabilities, SinkError, Verdict,
};
use tokio::{task::spawn_blocking, time::timeout};

/// Delivers to files.
#[derive(Debug)]
pub struct FileSink {
    form: Form,
    sync: bool,
    timeout: Duration,
    capabilities: SinkCapabilities,
}

impl FileSink {
    /// A sink as declared. Nothing is opened.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        let form = Form::new(config)?;
        let capabilities = SinkCapabilities {
            name: "file",
            connections: vec!["main".to_owned()],
            operation: "append".to_owned(),
            max_group: config.max_group()?,
            mixes_topics: !form.pattern.depends_on_topic(),
            budgets: Vec::new(),
        };
        Ok(Self { form, sync: config.sync, timeout: config.timeout()?, capabilities })
    }

    async fn append(&self, files: Vec<Lines>) -> Result<(), Outcome> {
        let sync = self.sync;
        // A disk may hang; the lines may still be written after that.
        let task = spawn_blocking(move || {
            files.iter().try_for_each(|Lines { path, bytes }| {
                append::append(path, bytes, sync).map_err(|error| judge(path, &error))
            })
        });
        match timeout(self.timeout, task).await {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => Err(Outcome::Unavailable(format!("the file's task ended: {panic}"))),
            Err(_) => Err(Outcome::TimedOut),
        }
    }
}

#[async_trait]
impl Sink for FileSink {
    fn capabilities(&self) -> SinkCapabilities {
        self.capabilities.clone()
    }

    async fn check(&self) -> Result<Vec<Option<Duration>>, SinkError> {
        let directory = self.form.directory();
        match directory.metadata() {
            Ok(found) if found.is_dir() => Ok(vec![None]),
            _ => Err(SinkError(format!("{} is no directory: create it", directory.display()))),
        }
    }

    async fn deliver(&self, delivery: Delivery<'_>) -> Answer {
        if delivery.connection != 0 {
            let problem = format!("there is no connection {}", delivery.connection);
            return Failure::Broken(problem).into();
        }
        let outcome = match self.form.lines(delivery.items) {
            Ok(files) => match self.append(files).await {
                Ok(()) => all(delivery.items.len(), Verdict::Done),
                Err(outcome) => outcome,
            },
            Err(reason) => Outcome::Refused(reason),
        };
        Answer { outcome, hint: Hint::default() }
    }

    /// Files may be on different disks.
    fn destination(&self, item: &Item<'_>) -> Option<String> {
        self.form.pattern.destination(item)
    }
}
