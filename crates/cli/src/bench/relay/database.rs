//! A database of a bench's or a drill's own: a relay delivers whatever it finds, and must not find a user's.

use crate::bench::meter::{Meter, Server, connect};
use anyhow::{Context, Result};
use tidegate::{Access, OpenStore};
use tokio_postgres::Client;

/// A database that nobody else uses.
pub struct Database {
    name: &'static str,
    server_url: String,
    pub url: String,
    pub server: Server,
    pub store: OpenStore,
    /// For tables of the bench's own.
    pub client: Client,
}

impl Database {
    pub async fn create(server_url: &str, name: &'static str) -> Result<Self> {
        let admin = connect(server_url).await?;
        admin
            .batch_execute(&format!("drop database if exists {name} with (force)"))
            .await
            .context("cannot drop the database of an earlier bench or drill")?;
        admin
            .batch_execute(&format!("create database {name}"))
            .await
            .context("cannot create a database of its own: use a role that may")?;
        let url = tidegate::with_database(server_url, name)?;
        let store = tidegate::open(&url, Access::Create).await?;
        let meter = Meter::open(&url).await?;
        let server = meter.server().cloned().context("the server says nothing about itself")?;
        let client = connect(&url).await?;
        Ok(Self { name, server_url: server_url.to_owned(), url, server, store, client })
    }

    pub async fn drop(self) -> Result<()> {
        let name = self.name;
        drop((self.store, self.client));
        let admin = connect(&self.server_url).await?;
        admin.batch_execute(&format!("drop database {name} with (force)")).await?;
        Ok(())
    }
}
