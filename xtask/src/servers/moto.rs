//! moto, which plays SQS and SNS. It throttles nothing and checks no signature.

use super::{daemon::Daemon, free_port};
use anyhow::{Context, Result};
use std::{fs, path::Path, process::Command, time::Duration};

/// It starts within three seconds on two idle cores, and later on busy ones.
const START_DEADLINE: Duration = Duration::from_secs(60);

/// A server, running or about to. It is stopped when this is dropped.
pub struct Moto(Daemon);

impl Moto {
    /// Starts a server below `directory`, by a Python that has it. It keeps all in memory.
    pub fn launch(python: &Path, directory: &Path) -> Result<Self> {
        let port = free_port()?;
        let home = directory.join("moto");
        fs::create_dir(&home).context("could not make a directory for moto")?;
        let mut command = Command::new(python);
        command.args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()]);
        Ok(Self(Daemon::launch("moto", command.current_dir(home), directory, port)?))
    }

    /// Returns when it accepts connections.
    pub fn await_listening(&mut self) -> Result<()> {
        self.0.await_listening(START_DEADLINE)
    }

    pub fn port(&self) -> u16 {
        self.0.port()
    }
}
