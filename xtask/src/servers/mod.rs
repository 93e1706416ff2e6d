//! Private servers for the tests: in a temporary directory, on free loopback ports, gone when the
//! guard is dropped.

mod daemon;
mod dynoxide;
mod moto;
mod nats;
mod pgbouncer;
mod rabbitmq;
mod redis;

use crate::install::Tools;
use anyhow::{Context, Result};
use dynoxide::Dynoxide;
use moto::Moto;
use nats::Nats;
use pgbouncer::Pgbouncer;
use rabbitmq::Rabbitmq;
use redis::Redis;
use std::{net::TcpListener, path::Path};
use tempfile::TempDir;
use tidegate_drill::postgres::{Cluster, Options, User};

/// Durable commits, as in production: tests of durability run on it.
const POSTGRES: &str = "fsync = on\nsynchronous_commit = on";

/// The running servers. Fields are dropped in this order: who uses a thing goes before it.
pub struct Servers {
    pgbouncer: Pgbouncer,
    postgres: Cluster,
    nats: Nats,
    rabbitmq: Rabbitmq,
    redis: Redis,
    dynoxide: Dynoxide,
    moto: Moto,
    directory: TempDir,
}

impl Servers {
    /// All servers accept connections when this returns; none is left behind when it fails.
    pub fn start(tools: &Tools) -> Result<Self> {
        let user = User::for_servers()?;
        let directory = TempDir::with_prefix("tidegate-")
            .context("could not create a temporary directory for the servers")?;
        user.own(directory.path())?;
        // These take seconds, in which the others start.
        let mut rabbitmq = Rabbitmq::launch(tools, directory.path(), user)?;
        let mut moto = Moto::launch(&tools.moto, directory.path())?;
        let postgres = Cluster::start(Options {
            programs: Some(&tools.postgres),
            settings: POSTGRES,
            directory: Some(&directory.path().join("postgres")),
        })?;
        let pgbouncer =
            Pgbouncer::start(&tools.pgbouncer, directory.path(), postgres.port(), user)?;
        let nats = Nats::start(&tools.nats, directory.path(), user)?;
        let redis = Redis::start(&tools.redis, directory.path(), user)?;
        let dynoxide = Dynoxide::start(&tools.dynoxide, directory.path())?;
        rabbitmq.await_listening()?;
        moto.await_listening()?;
        Ok(Self { pgbouncer, postgres, nats, rabbitmq, redis, dynoxide, moto, directory })
    }

    /// How the tests find the servers.
    pub fn environment(&self) -> [(&'static str, String); 7] {
        let postgres = |port: u16| format!("postgres://postgres@127.0.0.1:{port}/postgres");
        [
            ("TIDEGATE_TEST_POSTGRES", postgres(self.postgres.port())),
            ("TIDEGATE_TEST_PGBOUNCER", postgres(self.pgbouncer.port())),
            ("TIDEGATE_TEST_NATS", format!("nats://127.0.0.1:{}", self.nats.port())),
            ("TIDEGATE_TEST_RABBITMQ", format!("amqp://127.0.0.1:{}", self.rabbitmq.port())),
            ("TIDEGATE_TEST_REDIS", format!("redis://127.0.0.1:{}", self.redis.port())),
            ("TIDEGATE_TEST_DYNAMODB", format!("http://127.0.0.1:{}", self.dynoxide.port())),
            ("TIDEGATE_TEST_MOTO", format!("http://127.0.0.1:{}", self.moto.port())),
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
