//! What all commands share: the flags, the settings, the log.

use crate::{
    args::{Command, Global},
    config::{self, Config},
    out,
    store::Address,
};
use anyhow::Result;
use tidegate::sinks::CLIENT_LOGS;
use tracing_subscriber::EnvFilter;

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
}

impl App {
    /// Reads the settings and starts the log.
    pub fn new(global: Global, command: &Command) -> Result<Self> {
        start_log(&global, command);
        let config = config::read(global.config.as_deref())?;
        let address = Address::new(global.store.or_else(|| config.store.clone()))?;
        Ok(Self { address, config, json: global.json, quiet: global.quiet })
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
