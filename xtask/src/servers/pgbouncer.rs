//! pgbouncer in transaction mode without prepared statements: the harshest pooler that a store
//! must work behind.

use super::{daemon::Daemon, free_port};
use crate::{install::numbers, process::run_quietly};
use anyhow::{Context, Result};
use std::{fs, path::Path, process::Command, time::Duration};
use tidegate_drill::postgres::User;

/// It starts within milliseconds; more is a fault.
const START_DEADLINE: Duration = Duration::from_secs(10);

/// A running pooler. It is stopped when this is dropped.
pub struct Pgbouncer(Daemon);

impl Pgbouncer {
    /// Starts a pooler in front of the server on `postgres_port`; it accepts connections when this
    /// returns.
    pub fn start(program: &Path, directory: &Path, postgres_port: u16, user: User) -> Result<Self> {
        let port = free_port()?;
        let config = directory.join("pgbouncer.ini");
        let users = directory.join("pgbouncer.users");
        let version = numbers(&run_quietly(Command::new(program).arg("--version"))?);
        fs::write(&users, "\"postgres\" \"\"\n")
            .and_then(|()| fs::write(&config, settings(port, postgres_port, &version)))
            .context("could not configure pgbouncer")?;
        let mut command = user.command(program, directory);
        command.arg(&config);
        let mut pooler = Daemon::launch("pgbouncer", &mut command, directory, port)?;
        pooler.await_listening(START_DEADLINE)?;
        Ok(Self(pooler))
    }

    pub fn port(&self) -> u16 {
        self.0.port()
    }
}

/// Idle connections are given up soon: each test has its own database, and together they would
/// use up the server's connections.
fn settings(port: u16, postgres_port: u16, version: &[u32]) -> String {
    // Older releases never keep prepared statements and refuse the setting.
    let prepared = if version >= [1, 21].as_slice() { "max_prepared_statements = 0\n" } else { "" };
    format!(
        "[databases]\n\
         * = host=127.0.0.1 port={postgres_port}\n\
         [pgbouncer]\n\
         listen_addr = 127.0.0.1\n\
         listen_port = {port}\n\
         unix_socket_dir =\n\
         auth_type = trust\n\
         auth_file = pgbouncer.users\n\
         pool_mode = transaction\n\
         {prepared}\
         ignore_startup_parameters = extra_float_digits,options\n\
         max_client_conn = 500\n\
         default_pool_size = 20\n\
         server_idle_timeout = 5\n\
         autodb_idle_timeout = 5\n"
    )
}
