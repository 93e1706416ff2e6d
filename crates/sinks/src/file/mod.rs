//! Lines at the end of a file.
//!
//! Done means that the line is on the disk, unless `sync` is off. A line may be there twice: files
//! recognize nothing. Half a line is never followed by another.

mod answer;
mod append;
mod config;
mod place;
mod request;

pub use config::Config;

use crate::{ConfigError, Protected, failure::Failure, status::all};
use answer::judge;
use async_trait::async_trait;
use request::{Form, Lines};
use std::{path::Path, time::Duration};
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
    protected: Protected,
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
        let (sync, timeout) = (config.sync, config.timeout()?);
        Ok(Self { form, sync, timeout, protected: Protected::default(), capabilities })
    }

    /// The same sink, which never writes to these files, whatever a topic makes of its path.
    pub fn keeping_off(self, protected: Protected) -> Result<Self, ConfigError> {
        if let Some(what) = self.form.only_file().and_then(|path| protected.find(path)) {
            return Err(ConfigError::new("path", format!("is {what}: name another file")));
        }
        Ok(Self { protected, ..self })
    }

    /// Refuses what is protected before anything is written: the file follows from the topic.
    fn refuse_protected(&self, files: &[Lines]) -> Result<(), Outcome> {
        let found = files.iter().find_map(|lines| self.protected.find(&lines.path));
        found.map_or(Ok(()), |what| {
            Err(Outcome::Refused(format!("the file of this topic would be {what}")))
        })
    }

    async fn append(&self, files: Vec<Lines>) -> Result<(), Outcome> {
        self.refuse_protected(&files)?;
        let sync = self.sync;
        // A disk may hang; the lines may still be written after that.
        let task = spawn_blocking(move || {
            files.iter().try_for_each(|Lines { path, bytes }| {
                place::check_kind(path).map_err(Outcome::Broken)?;
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
        let (directory, file) = (self.form.directory(), self.form.only_file().map(Path::to_owned));
        // A file system over a network may hang.
        let look = spawn_blocking(move || match file {
            Some(file) => place::check(&file),
            None => place::check_directory(&directory),
        });
        match timeout(self.timeout, look).await {
            Ok(Ok(found)) => found.map(|()| vec![None]).map_err(SinkError),
            Ok(Err(panic)) => Err(SinkError(format!("the file's task ended: {panic}"))),
            Err(_) => Err(SinkError("the file system does not answer".to_owned())),
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
