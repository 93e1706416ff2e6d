//! dynoxide, which plays DynamoDB. It throttles nothing, its indexes never lag and it checks no signature.

use super::{daemon::Daemon, free_port};
use anyhow::{Context, Result};
use std::{fs, path::Path, process::Command, time::Duration};

/// It starts within milliseconds; more is a fault.
const START_DEADLINE: Duration = Duration::from_secs(10);

/// A running server. It is stopped when this is dropped.
pub struct Dynoxide(Daemon);

impl Dynoxide {
    /// Starts a server below `directory`; it accepts connections when this returns. It keeps all in memory.
    pub fn start(program: &Path, directory: &Path) -> Result<Self> {
        let port = free_port()?;
        let home = directory.join("dynoxide");
        fs::create_dir(&home).context("could not make a directory for dynoxide")?;
        let mut command = Command::new(program);
        command.args(["serve", "--host", "127.0.0.1", "--port", &port.to_string()]);
        let mut server = Daemon::launch("dynoxide", command.current_dir(home), directory, port)?;
        server.await_listening(START_DEADLINE)?;
        Ok(Self(server))
    }

    pub fn port(&self) -> u16 {
        self.0.port()
    }
}
