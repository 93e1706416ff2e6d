//! Private servers for the tests: in a temporary directory, on free loopback ports, gone when the
//! guard is dropped.

mod pgbouncer;
mod postgres;
mod user;

use crate::install::Tools;
use anyhow::{Context, Result};
use pgbouncer::Pgbouncer;
use postgres::Postgres;
use std::{net::TcpListener, path::Path};
use tempfile::TempDir;
use user::User;

/// The running servers. Fields are dropped in this order: who uses a thing goes before it.
pub struct Servers {
    pgbouncer: Pgbouncer,
    postgres: Postgres,
    directory: TempDir,
}

impl Servers {
    /// Both servers accept connections when this returns; neither is left behind when it fails.
    pub fn start(tools: &Tools) -> Result<Self> {
        let user = User::for_servers()?;
        let directory = TempDir::with_prefix("tidegate-")
            .context("could not create a temporary directory for the servers")?;
        user.own(directory.path())?;
        let postgres = Postgres::start(&tools.postgres, directory.path(), user)?;
        let pgbouncer =
            Pgbouncer::start(&tools.pgbouncer, directory.path(), postgres.port(), user)?;
        Ok(Self { pgbouncer, postgres, directory })
    }

    /// How the tests find the servers.
    pub fn environment(&self) -> [(&'static str, String); 2] {
        let url = |port: u16| format!("postgres://postgres@127.0.0.1:{port}/postgres");
        [
            ("TIDEGATE_TEST_POSTGRES", url(self.postgres.port())),
            ("TIDEGATE_TEST_PGBOUNCER", url(self.pgbouncer.port())),
        ]
    }

    /// Where the servers keep their data and their logs.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }
}

fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("could not find a free port")?;
    Ok(listener.local_addr().context("could not find a free port")?.port())
}

/// What a server wrote before it gave up.
fn log_of(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| format!("(no log: {error})"))
}
