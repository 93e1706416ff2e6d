use super::*;
use crate::{
    client::Settings,
    server::{Scheme, Server},
};
use rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer};
use std::io::Write;
use tempfile::NamedTempFile;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

const NATS: Scheme = Scheme { plain: "nats", secure: "tls", port: 4222, secure_port: 4222 };

/// A name that nobody can resolve: whoever tries fails.
const NAME: &str = "nats.tidegate.invalid";

fn server(url: &str) -> Server {
    Server::parse("url", url, NATS).unwrap()
}

fn dialer(server: &Server, ca_file: Option<&NamedTempFile>) -> Dialer {
    let settings = Settings {
        secure: server.secure,
        timeout: Duration::from_secs(5),
        ca_file: ca_file.map(NamedTempFile::path),
        allow: &["127.0.0.1".to_owned().try_into().unwrap()],
    };
    Dialer::new(settings, std::slice::from_ref(server), false).unwrap()
}

fn info(secure: bool, connect_urls: &[String]) -> String {
    let info = serde_json::json!({
        "server_id": "x", "server_name": "x", "version": "2.10.0", "go": "go", "host": "h",
        "port": 1, "headers": true, "max_payload": 1000, "proto": 1, "client_id": 1,
        "tls_required": secure, "connect_urls": connect_urls,
    });
    format!("INFO {info}\r\n")
}

/// Answers a client's greeting, and hangs up.
async fn greet(socket: impl AsyncRead + AsyncWrite + Unpin) {
    let mut lines = BufReader::new(socket);
    for _ in 0..2 {
        let mut line = String::new();
        lines.read_line(&mut line).await.unwrap();
    }
    lines.get_mut().write_all(b"PONG\r\n").await.unwrap();
}

fn acceptor(name: &str) -> (TlsAcceptor, NamedTempFile) {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(made.cert.pem().as_bytes()).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), file)
}

#[tokio::test]
async fn the_address_that_was_judged_is_connected_to_and_no_other() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gossiped = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let urls = [gossiped.local_addr().unwrap().to_string()];
    let address = listener.local_addr().unwrap();
    let addresses = [address];
    let server = server(&format!("nats://{NAME}:{}", address.port()));
    let dialer = dialer(&server, None);
    let opening = Connection::open_at(&server, &addresses, &dialer, &Credential::None);
    let serving = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        socket.write_all(info(false, &urls).as_bytes()).await.unwrap();
        greet(socket).await;
    };
    let (connection, ()) = tokio::join!(opening, serving);
    let connection = connection.unwrap_or_else(|failure| panic!("{failure:?}"));
    // The server hung up: the client may look for another, but only where it was.
    let lost = connection.ended("nothing").await;
    assert!(lost.is_err(), "{lost:?}");
    let elsewhere = tokio::time::timeout(Duration::from_millis(50), gossiped.accept()).await;
    assert!(elsewhere.is_err(), "it connected to what the server told of");
}

#[tokio::test]
async fn the_certificate_must_be_for_the_name_and_not_for_the_address() {
    for (certified, is_taken) in [(NAME, true), ("127.0.0.1", false), ("other.invalid", false)] {
        let (acceptor, ca_file) = acceptor(certified);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let addresses = [address];
        let server = server(&format!("tls://{NAME}:{}", address.port()));
        let dialer = dialer(&server, Some(&ca_file));
        let opening = Connection::open_at(&server, &addresses, &dialer, &Credential::None);
        let serving = async {
            let (mut socket, _) = listener.accept().await.unwrap();
            socket.write_all(info(true, &[]).as_bytes()).await.unwrap();
            if let Ok(socket) = acceptor.accept(socket).await {
                greet(socket).await;
            }
        };
        match tokio::join!(opening, serving).0 {
            Ok(_) => assert!(is_taken, "{certified}"),
            Err(failure) => {
                assert!(!is_taken, "{certified}: {failure:?}");
                let reason = failure.reason();
                assert!(reason.contains("certificate that does not verify"), "{reason}");
            }
        }
    }
}

#[test]
fn only_subjects_with_a_message_under_way_are_remembered() {
    let shared = Arc::new(Shared::default());
    let forbid = |name: &str| {
        let text = format!("Permissions Violation for Publish to \"{name}\"");
        shared.note(&Event::ServerError(async_nats::ServerError::Other(text)));
    };
    let (one, again) = (Subject::new("s-0", &shared), Subject::new("s-0", &shared));
    (0..10_000).for_each(|n| forbid(&format!("s-{n}")));
    let known = || shared.state.borrow().forbidden.keys().cloned().collect::<Vec<_>>();
    assert_eq!(known(), ["s-0"]);
    drop(one);
    assert_eq!(known(), ["s-0"], "another is under way");
    drop(again);
    assert!(known().is_empty() && shared.under_way().is_empty());
}
