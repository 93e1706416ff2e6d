//! What all commands share: the flags, the settings, the log.

use crate::{
    args::{Command, Global},
    config::{self, Config},
    out,
    store::Address,
};
use anyhow::{Result, bail};
use std::{
    fs::{File, Metadata},
    io,
    os::fd::{AsFd, BorrowedFd},
};
use tidegate::{
    Access, OpenOutbox, OpenStore,
    sinks::{CLIENT_LOGS, Protected},
};
use tracing_subscriber::EnvFilter;

/// How error messages name the files of the store.
const STORE: &str = "the store";

/// What all commands share.
pub struct App {
    /// Where batches are kept.
    pub address: Address,
    /// What flags leave open.
    pub config: Config,
    /// Whether to print JSON.
    pub json: bool,
    /// Whether to say nothing but errors and data.
    pub quiet: bool,
    /// Files that no output may be written to.
    pub protected: Protected,
}

impl App {
    /// Reads the settings and starts the log.
    pub fn new(global: Global, command: &Command) -> Result<Self> {
        start_log(&global, command);
        let config = config::read(global.config.as_deref())?;
        let address = Address::new(global.store.or_else(|| config.store.clone()))?;
        let mut protected = Protected::default();
        protected.add(config::path(global.config.as_deref()), "the configuration file");
        config.files().into_iter().for_each(|file| protected.add(file, "a file of the settings"));
        command.inputs().into_iter().for_each(|file| protected.add(file, "the input"));
        for file in address.files() {
            refuse_as_input(command, &file)?;
            protected.add(file, STORE);
        }
        if command.reads_stdin()
            && let Ok(stdin) = metadata(io::stdin().as_fd())
        {
            if protected.find_open(&stdin) == Some(STORE) {
                bail!("stdin is the store: name another file");
            }
            protected.add_open(&stdin, "the input");
        }
        let credentials = address.credentials();
        credentials
            .into_iter()
            .for_each(|file| protected.add(file, "a file of the store's address"));
        refuse_redirection(&protected)?;
        Ok(Self { address, config, json: global.json, quiet: global.quiet, protected })
    }

    /// Opens the store; one that is not there yet is made, and that is said.
    pub async fn open_or_create(&self) -> Result<OpenStore> {
        let store = self.address.open(Access::Create).await?;
        self.say_if_new(&store);
        Ok(store)
    }

    /// The same for a command that needs an outbox only. A table in the cloud costs money, and its name may be
    /// mistyped: only `migrate` makes one.
    pub async fn open_outbox_or_create(&self) -> Result<OpenOutbox> {
        let access = if self.address.is_dynamodb() { Access::Existing } else { Access::Create };
        let outbox = self.address.open_outbox(access).await?;
        if outbox.is_new() {
            self.say(&self.address.created());
        }
        Ok(outbox)
    }

    /// Says that a store was made just now, if it was and if it stays.
    pub fn say_if_new(&self, store: &OpenStore) {
        if store.is_new() && store.capabilities().durable {
            self.say(&self.address.created());
        }
    }

    /// Says something that is no data.
    pub fn say(&self, line: &str) {
        if !self.quiet {
            out::note(line);
        }
    }

    /// Whether to draw progress: only where somebody looks.
    pub fn draws(&self) -> bool {
        !self.quiet && out::is_watched()
    }
}

/// A process that reads the store's file beside SQLite loses the locks that SQLite holds on it.
fn refuse_as_input(command: &Command, store: &std::path::Path) -> Result<()> {
    let mut own = Protected::default();
    own.add(store, STORE);
    match command.inputs().into_iter().find(|input| own.find(input).is_some()) {
        Some(input) => bail!("`{}` is the store: name another file", input.display()),
        None => Ok(()),
    }
}

/// The shell may have sent our output to a file that it would damage.
fn refuse_redirection(protected: &Protected) -> Result<()> {
    for (name, open) in
        [("stdout", metadata(io::stdout().as_fd())), ("stderr", metadata(io::stderr().as_fd()))]
    {
        if let Some(what) = open.ok().as_ref().and_then(|open| protected.find_open(open)) {
            bail!("{name} is sent to {what}: send it to another file");
        }
    }
    Ok(())
}

/// The metadata of an open file descriptor.
pub fn metadata(open: BorrowedFd<'_>) -> io::Result<Metadata> {
    File::from(open.try_clone_to_owned()?).metadata()
}

fn start_log(global: &Global, command: &Command) {
    let level = match (global.quiet, global.verbose) {
        (true, _) => "error",
        (false, 0) => usual_level(command),
        (false, 1) => "tidegate=debug,warn",
        (false, _) => "trace",
    };
    let filter = EnvFilter::builder()
        .with_default_directive(tracing::Level::ERROR.into())
        .parse_lossy(std::env::var("TIDEGATE_LOG").unwrap_or_else(|_| level.to_owned()));
    // What clients of brokers say may hold payloads, and what matters of it is said elsewhere.
    let filter = CLIENT_LOGS.iter().fold(filter, |filter, target| {
        let off = format!("{target}=off").parse();
        off.map_or_else(|_| filter.clone(), |off| filter.clone().add_directive(off))
    });
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_ansi(console::colors_enabled_stderr())
        .with_writer(out::Log)
        .init();
}

/// Phases and closed batches are what a worker has to say; a progress bar says the latter.
fn usual_level(command: &Command) -> &'static str {
    match command {
        Command::Worker(_) | Command::Relay(_) => "tidegate=info,warn",
        Command::Run(_) if !out::is_watched() => "tidegate=info,warn",
        Command::Run(_) => "tidegate::phases=info,warn",
        // Connections break there on purpose.
        Command::Drill { .. } => "error",
        _ => "warn",
    }
}
