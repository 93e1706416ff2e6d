//! Redis, with a small limit for what one value may hold, so that tests can exceed it.

use super::{daemon::Daemon, free_port};
use anyhow::{Context, Result};
use std::{fs, path::Path, time::Duration};
use tidegate_drill::postgres::User;

/// It starts within milliseconds; more is a fault.
const START_DEADLINE: Duration = Duration::from_secs(10);

/// A running server. It is stopped when this is dropped.
pub struct Redis(Daemon);

impl Redis {
    /// Starts a server below `directory`; it accepts connections when this returns.
    pub fn start(program: &Path, directory: &Path, user: User) -> Result<Self> {
        let port = free_port()?;
        let home = directory.join("redis");
        fs::create_dir(&home).context("could not configure Redis")?;
        user.own(&home)?;
        let mut command = user.command(program, &home);
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1"]);
        command.args(["--proto-max-bulk-len", "2mb", "--appendonly", "yes", "--save", ""]);
        let mut server = Daemon::launch("redis", &mut command, directory, port)?;
        server.await_listening(START_DEADLINE)?;
        Ok(Self(server))
    }

    pub fn port(&self) -> u16 {
        self.0.port()
    }
}
