//! pgbouncer in between, with TLS on both sides.

use crate::{Secure, cancel::claim_past_the_deadline, certificates::Authority, is_verified};
use std::{
    env,
    net::{TcpListener, TcpStream},
    process::{Child, Stdio},
    time::{Duration, Instant},
};
use tidegate_core::Migrate;
use tidegate_postgres::Postgres;

/// Names the program.
const PROGRAM: &str = "TIDEGATE_TEST_PGBOUNCER_BIN";

/// A running pooler. It is ended when this is dropped.
struct Pooler {
    port: u16,
    process: Child,
}

impl Pooler {
    fn start(secure: &Secure) -> Self {
        let program = env::var_os(PROGRAM)
            .unwrap_or_else(|| panic!("{PROGRAM} is not set: use `cargo xtask test`"));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (server, certified) = (&secure.server, secure.authority.certify("localhost"));
        server.write("pooler.crt", &certified.certificate);
        server.write("pooler.key", &certified.key);
        server.write("pooler.ca", &secure.authority.pem());
        server.write("pooler.users", "\"encrypted\" \"\"\n");
        let config = format!(
            "[databases]\n\
             * = host=localhost port={}\n\
             [pgbouncer]\n\
             listen_addr = 127.0.0.1\n\
             listen_port = {port}\n\
             unix_socket_dir =\n\
             auth_type = trust\n\
             auth_file = pooler.users\n\
             pool_mode = transaction\n\
             client_tls_sslmode = require\n\
             client_tls_cert_file = pooler.crt\n\
             client_tls_key_file = pooler.key\n\
             server_tls_sslmode = verify-full\n\
             server_tls_ca_file = pooler.ca\n",
            server.cluster.port()
        );
        let config = server.write("pooler.ini", &config);
        let mut command = server.beside(&program);
        let process = command.arg(config).stderr(Stdio::null()).spawn().unwrap();
        let pooler = Self { port, process };
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(30), "pgbouncer does not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        pooler
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn a_pooler_with_tls_on_both_sides_changes_nothing() {
    let secure = Secure::start().await;
    let admin = secure.server.client().await;
    let pooler = Pooler::start(&secure);
    let files = secure.directory.path().display();
    let place = format!("host=localhost port={} user=encrypted dbname=postgres", pooler.port);
    let address = format!("{place} sslmode=verify-full sslrootcert={files}/ca.pem");
    let store = Postgres::connect(&address).await.unwrap();
    assert!(is_verified(store.protection().unwrap()));
    store.migrate().await.unwrap();
    claim_past_the_deadline(&store, &admin).await;
    secure.file("other.pem", &Authority::new("somebody else").pem());
    let wrong = format!("{place} sslmode=verify-ca sslrootcert={files}/other.pem");
    assert!(Postgres::connect(&wrong).await.is_err());
    let plain = Postgres::connect(&format!("{place} sslmode=disable")).await;
    assert!(plain.is_err(), "the pooler wants TLS");
}
