//! PostgreSQL with durable commits, as in production: tests of durability run on it.

use super::{free_port, log_of, user::User};
use crate::process::run_quietly;
use anyhow::{Context, Result};
use std::{
    fs::OpenOptions,
    io::Write,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// A running server. It is stopped when this is dropped.
pub struct Postgres {
    programs: PathBuf,
    directory: PathBuf,
    user: User,
    port: u16,
}

impl Postgres {
    /// Creates a cluster below `directory` and starts it; it accepts connections when this returns.
    pub fn start(programs: &Path, directory: &Path, user: User) -> Result<Self> {
        // The guard comes first: a server that starts too late is stopped as well.
        let server = Self {
            programs: programs.to_owned(),
            directory: directory.to_owned(),
            user,
            port: free_port()?,
        };
        server.create().context("could not create a PostgreSQL cluster")?;
        server.configure().context("could not configure PostgreSQL")?;
        let log = directory.join("postgres.log");
        run_quietly(server.pg_ctl("start").arg("-l").arg(&log))
            .with_context(|| log_of(&log))
            .context("could not start PostgreSQL")?;
        Ok(server)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    fn create(&self) -> Result<()> {
        let mut initdb = self.user.command(self.programs.join("initdb"), &self.directory);
        initdb.arg("-D").arg(self.data()).args(["-U", "postgres", "-A", "trust"]);
        // Nothing is worth a sync before the first test; the server itself keeps fsync on.
        run_quietly(initdb.args(["-E", "UTF8", "--locale=C", "--no-sync"])).map(drop)
    }

    fn configure(&self) -> Result<()> {
        let path = self.data().join("postgresql.conf");
        let mut file = OpenOptions::new().append(true).open(path)?;
        let socket = self.directory.display().to_string().replace('\'', "''");
        writeln!(file, "listen_addresses = '127.0.0.1'")?;
        writeln!(file, "port = {}", self.port)?;
        writeln!(file, "unix_socket_directories = '{socket}'")?;
        writeln!(file, "max_connections = 200")?;
        writeln!(file, "fsync = on")?;
        writeln!(file, "synchronous_commit = on")?;
        Ok(())
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    fn pg_ctl(&self, action: &str) -> Command {
        let mut pg_ctl = self.user.command(self.programs.join("pg_ctl"), &self.directory);
        pg_ctl.arg(action).arg("-D").arg(self.data()).args(["-w", "-t", "30"]);
        pg_ctl
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if !self.data().join("postmaster.pid").exists() {
            return;
        }
        // Nobody reads the data again, so there is nothing to write before the end. The group is
        // its own, so that a second Ctrl-C does not end the stopping.
        let mut stop = self.pg_ctl("stop");
        let stop = stop.args(["-m", "immediate"]).process_group(0);
        match stop.stdout(Stdio::null()).status() {
            Ok(status) if status.success() => {}
            Ok(status) => eprintln!("could not stop PostgreSQL: pg_ctl gave {status}"),
            Err(error) => eprintln!("could not stop PostgreSQL: {error}"),
        }
    }
}
