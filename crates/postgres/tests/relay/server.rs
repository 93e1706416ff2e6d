//! A PostgreSQL server of a test's own, to which anything may be done.

use std::{env, path::PathBuf, sync::Arc};
use tidegate_core::Migrate;
use tidegate_drill::postgres::{Cluster, Crash, Options};
use tidegate_postgres::Postgres;
use tokio_postgres::{Client, NoTls};

/// Names the directory with PostgreSQL's programs, if they are not where Debian puts them.
const PROGRAMS: &str = "TIDEGATE_TEST_POSTGRES_BIN";

/// A running server. It is ended when this is dropped.
pub struct Server {
    pub cluster: Cluster,
}

impl Server {
    /// It accepts connections when this returns. `settings` are lines of its configuration.
    pub fn start(settings: &str) -> Self {
        let programs = env::var_os(PROGRAMS).map(PathBuf::from);
        let options = Options { programs: programs.as_deref(), settings, directory: None };
        Self { cluster: Cluster::start(options).unwrap() }
    }

    /// A store on it, with its schema.
    pub async fn store(&self) -> Arc<Postgres> {
        let store = Postgres::connect(&self.cluster.url()).await.unwrap();
        store.migrate().await.unwrap();
        Arc::new(store)
    }

    pub async fn client(&self) -> Client {
        let connected = tokio_postgres::connect(&self.cluster.url(), NoTls).await;
        let (client, connection) = connected.unwrap();
        tokio::spawn(connection);
        client
    }

    /// Stops without any farewell, as after a crash, and starts again.
    pub fn restart(&mut self) {
        self.cluster.crash(Crash::Immediate).unwrap();
        self.cluster.restart().unwrap();
    }
}
