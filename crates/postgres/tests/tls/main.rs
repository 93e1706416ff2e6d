//! TLS with a real server: who is believed, who is not, and what people are told then.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod cancel;
mod certificates;
mod login;
mod pooler;
#[allow(dead_code, reason = "the other tests use more of it")]
#[path = "../support/proxy.rs"]
mod proxy;
#[allow(dead_code, reason = "the other tests use more of it")]
#[path = "../relay/server.rs"]
mod server;
mod trust;

use certificates::{Authority, Certified};
use server::Server;
use std::path::PathBuf;
use tempfile::TempDir;
use tidegate_core::{Kind, StoreError};
use tidegate_postgres::{Postgres, Protection};

/// A server that speaks TLS, and files for its clients.
struct Secure {
    server: Server,
    authority: Authority,
    directory: TempDir,
}

/// Who may come, and how.
const ENTRANCES: &str = "
hostssl   all certified 127.0.0.1/32 trust clientcert=verify-full
hostssl   all scram     127.0.0.1/32 scram-sha-256
hostssl   all encrypted 127.0.0.1/32 trust
hostnossl all plain     127.0.0.1/32 trust
host      all postgres  127.0.0.1/32 trust
local     all all                    trust
";

impl Secure {
    /// Its certificate is for `localhost`.
    async fn start() -> Self {
        let authority = Authority::new("an authority");
        let server = Server::start(
            "ssl_cert_file = 'server.crt'\nssl_key_file = 'server.key'\nssl_ca_file = 'ca.crt'",
        );
        let client = server.client().await;
        client
            .batch_execute(
                "create role certified login superuser;
                 create role scram login superuser password 'secret';
                 create role encrypted login superuser;
                 create role plain login superuser",
            )
            .await
            .unwrap();
        client.batch_execute("alter system set ssl = on").await.unwrap();
        server.write("data/ca.crt", &authority.pem());
        server.write("data/pg_hba.conf", ENTRANCES);
        let directory = TempDir::with_prefix("tidegate-").unwrap();
        let mut secure = Self { server, authority, directory };
        secure.file("ca.pem", &secure.authority.pem());
        let certified = secure.authority.certify("localhost");
        secure.show(&certified);
        secure
    }

    /// From now on the server has this certificate.
    fn show(&mut self, certified: &Certified) {
        self.server.write("data/server.crt", &certified.certificate);
        self.server.write("data/server.key", &certified.key);
        self.server.restart();
    }

    /// A file of a client.
    fn file(&self, name: &str, text: &str) -> PathBuf {
        certificates::write(self.directory.path(), name, text)
    }

    /// Connects with these settings; `@` stands for the directory with the client's files.
    async fn connect(&self, settings: &str) -> Result<Protection, StoreError> {
        let store = Postgres::connect(&self.address(settings)).await?;
        Ok(store.protection().unwrap())
    }

    fn address(&self, settings: &str) -> String {
        let files = self.directory.path().display().to_string();
        let settings = settings.replace('@', &files);
        let host = if settings.contains("host=") { "" } else { "host=localhost" };
        let user = if settings.contains("user=") { "" } else { "user=postgres" };
        format!("{host} port={} {user} dbname=postgres {settings}", self.server.cluster.port())
    }

    /// What is said when it does not work.
    async fn refusal(&self, settings: &str) -> String {
        let error = self.connect(settings).await.expect_err(settings);
        assert_eq!(error.kind(), Kind::BadAddress, "{settings}: {error}");
        assert!(!error.is_passing() && !error.to_string().contains("secret"), "{error}");
        error.to_string()
    }
}

fn is_verified(protection: Protection) -> bool {
    matches!(protection, Protection::Verified { version: "TLS 1.3", by_name: true })
}
