//! JetStream of a real NATS.

use crate::{
    brokers::{
        comes_and_goes, declared, item, refusal, retry, secrets, send, server, unique, verdicts,
    },
    gate::acceptor,
};
use async_nats::jetstream::{
    self,
    stream::{self, DiscardPolicy, Stream},
};
use std::{io::Write, net::SocketAddr};
use tempfile::NamedTempFile;
use tidegate_core::{
    Headers,
    sink::{Item, Outcome, Sink, Verdict},
};
use tidegate_sinks::nats::{Config, Nats};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    net::TcpListener,
    sync::oneshot,
};

fn at(address: SocketAddr, rest: &str) -> Nats {
    let config: Config = declared(&format!("url = 'nats://{address}'\n{rest}"));
    Nats::new(&config, &secrets).unwrap()
}

fn sink(rest: &str) -> Nats {
    at(nats(), rest)
}

fn nats() -> SocketAddr {
    server("TIDEGATE_TEST_NATS")
}

/// A stream of what is published below a name, and the name.
async fn stream(config: stream::Config) -> (Stream, String) {
    let name = unique("orders");
    let client = async_nats::connect(format!("nats://{}", nats())).await.unwrap();
    let subjects = vec![format!("{name}.>")];
    let config = stream::Config { name: name.clone(), subjects, ..config };
    (jetstream::new(client).create_stream(config).await.unwrap(), name)
}

async fn ids(stream: &mut Stream) -> Vec<String> {
    let count = stream.info().await.unwrap().state.messages;
    let mut ids = Vec::new();
    for sequence in 1..=count {
        let message = stream.get_raw_message(sequence).await.unwrap();
        ids.push(message.headers.get("Nats-Msg-Id").unwrap().as_str().to_owned());
    }
    ids
}

#[tokio::test]
async fn a_message_has_all_that_its_item_has_and_is_recognized() {
    let (mut stream, name) = stream(stream::Config::default()).await;
    let own = Headers::from_iter([
        ("content-type", "text/plain"),
        ("ce-type", "created"),
        ("traceparent", "00-1"),
    ]);
    let topic = format!("{name}.created");
    let full = Item { headers: &own, payload: b"\x00\xff", ..item("m1", &topic, Some("a b.c")) };
    let sink = sink("subject = '{topic}.{key}'");
    sink.check().await.unwrap();
    for _ in 0..2 {
        assert_eq!(verdicts(&sink, &[full]).await, [Verdict::Done]);
    }
    assert_eq!(ids(&mut stream).await, ["m1"], "the second one was recognized");
    let message = stream.get_raw_message(1).await.unwrap();
    assert_eq!(message.subject.as_str(), format!("{topic}.a%20b%2Ec"));
    assert_eq!(&message.payload[..], b"\x00\xff");
    let expected = [
        ("content-type", "text/plain"),
        ("ce-type", "created"),
        ("traceparent", "00-1"),
        ("tidegate-topic", &topic),
        ("tidegate-key", "a b.c"),
    ];
    for (header, value) in expected {
        assert_eq!(message.headers.get(header).map(|it| it.as_str()), Some(value), "{header}");
    }
}

#[tokio::test]
async fn items_of_a_key_keep_their_order_and_stop_at_one_that_fails() {
    let (mut stream, name) = stream(stream::Config::default()).await;
    let (topic, nowhere) = (format!("{name}.a"), unique("nowhere"));
    let items = [
        item("1", &topic, Some("a")),
        item("2", &nowhere, Some("a")),
        item("3", &topic, Some("a")),
        item("4", &topic, Some("b")),
        item("5", &topic, Some("b")),
        item("6", "not valid", Some("c")),
        item("7", &topic, Some("c")),
    ];
    let verdicts = verdicts(&sink(""), &items).await;
    assert_eq!(verdicts[0], Verdict::Done);
    let expected = format!("no stream takes the subject `{nowhere}`: create one for it");
    assert_eq!(retry(&verdicts[1]), expected);
    assert_eq!(verdicts[2..5], [Verdict::Behind, Verdict::Done, Verdict::Done]);
    let invalid = Verdict::Dead("the subject `not valid` has a blank in it".to_owned());
    assert_eq!(verdicts[5..], [invalid, Verdict::Behind]);
    assert_eq!(ids(&mut stream).await, ["1", "4", "5"]);
}

#[tokio::test]
async fn a_thousand_go_together() {
    let (mut stream, name) = stream(stream::Config::default()).await;
    let topic = format!("{name}.a");
    let ids: Vec<String> = (0..1000).map(|id| id.to_string()).collect();
    let items: Vec<_> = ids.iter().map(|id| item(id, &topic, None)).collect();
    assert_eq!(verdicts(&sink(""), &items).await, vec![Verdict::Done; 1000]);
    assert_eq!(stream.info().await.unwrap().state.messages, 1000);
}

#[tokio::test]
async fn a_server_may_come_and_go() {
    let (_, name) = stream(stream::Config::default()).await;
    let topic = format!("{name}.a");
    comes_and_goes(nats(), &topic, at).await;
}

#[tokio::test]
async fn servers_are_tried_in_their_order() {
    let (_, name) = stream(stream::Config::default()).await;
    let topic = format!("{name}.a");
    let config = format!("url = ['nats://127.0.0.1:1', 'nats://{}']", nats());
    let sink = Nats::new(&declared(&config), &secrets).unwrap();
    assert_eq!(verdicts(&sink, &[item("1", &topic, None)]).await, [Verdict::Done]);
    let config = format!("url = 'nats://127.0.0.1:1, nats://{}'", nats());
    Nats::new(&declared(&config), &secrets).unwrap().check().await.unwrap();
}

#[tokio::test]
async fn what_is_larger_than_the_server_or_the_stream_takes_is_dead_alone() {
    let config = stream::Config { max_message_size: 1000, ..Default::default() };
    let (_, name) = stream(config).await;
    let topic = format!("{name}.a");
    let large = vec![b'x'; (1 << 20) + 1];
    let items = [
        Item { payload: &large, ..item("1", &topic, Some("a")) },
        Item { payload: &large[..1001], ..item("2", &topic, Some("b")) },
        item("3", &topic, Some("c")),
    ];
    let verdicts = verdicts(&sink(""), &items).await;
    let Verdict::Dead(reason) = &verdicts[0] else { panic!("{verdicts:?}") };
    assert!(reason.starts_with("it is larger than the server takes"), "{reason}");
    let Verdict::Dead(reason) = &verdicts[1] else { panic!("{verdicts:?}") };
    assert!(reason.contains("size exceeds maximum"), "{reason}");
    assert_eq!(verdicts[2], Verdict::Done);
}

#[tokio::test]
async fn a_full_stream_holds_back() {
    let config =
        stream::Config { max_messages: 1, discard: DiscardPolicy::New, ..Default::default() };
    let (_, name) = stream(config).await;
    let topic = format!("{name}.a");
    let items = [item("1", &topic, Some("a")), item("2", &topic, Some("a"))];
    let throttled = Verdict::Throttled { retry_after: None };
    assert_eq!(verdicts(&sink(""), &items).await, [Verdict::Done, throttled]);
}

#[tokio::test]
async fn a_user_who_is_refused_breaks_the_sink_and_the_password_does_not_show() {
    let sink = sink("user = 'tidegate'\npassword = { env = 'SECRET_WRONG' }");
    let Outcome::Broken(reason) = send(&sink, &[item("1", "t", None)]).await else { panic!() };
    assert_eq!(reason, format!("{} refuses the credentials", nats()));
    let error = sink.check().await.unwrap_err().to_string();
    assert_eq!(error, reason);
    assert!(!format!("{sink:?}").contains("value of"));
}

#[tokio::test]
async fn an_account_without_jetstream_is_no_messages_fault() {
    let env = |name: &str| (name == "P").then(|| "bare".to_owned());
    let config = format!("url = 'nats://{}'\nuser = 'bare'\npassword = {{ env = 'P' }}", nats());
    let sink = Nats::new(&declared(&config), &env).unwrap();
    let error = sink.check().await.unwrap_err().to_string();
    assert!(error.starts_with("JetStream is not enabled there"), "{error}");
    let items = [item("1", "orders", None), item("2", "orders", Some("k"))];
    let Outcome::Broken(error) = send(&sink, &items).await else { panic!("they are blamed") };
    assert!(error.starts_with("JetStream is not enabled there"), "{error}");
}

#[tokio::test]
async fn a_subject_that_the_user_may_not_use_is_told_at_once() {
    let env = |name: &str| (name == "P").then(|| "narrow".to_owned());
    let config = format!("url = 'nats://{}'\nuser = 'narrow'\npassword = {{ env = 'P' }}", nats());
    let sink = Nats::new(&declared(&config), &env).unwrap();
    // Nor may the user ask for the account; that says nothing against publishing.
    sink.check().await.unwrap();
    let items = [item("1", "forbidden", None), item("2", "allowed.nowhere", None)];
    let verdicts = verdicts(&sink, &items).await;
    let expected = "the user may not publish to the subject `forbidden`: allow it";
    assert_eq!(retry(&verdicts[0]), expected);
    assert!(retry(&verdicts[1]).starts_with("no stream takes"), "{verdicts:?}");
}

/// A server that greets, hears who comes, and hangs up. It demands TLS if it can speak it.
async fn greeter(
    tls: Option<tokio_rustls::TlsAcceptor>,
) -> (SocketAddr, oneshot::Receiver<serde_json::Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (heard, hear) = oneshot::channel();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let info = serde_json::json!({
            "server_id": "x", "server_name": "x", "version": "2.10.0", "go": "go", "host": "h",
            "port": 1, "headers": true, "max_payload": 1000, "proto": 1, "client_id": 1,
            "nonce": "the nonce", "tls_required": tls.is_some(),
        });
        socket.write_all(format!("INFO {info}\r\n").as_bytes()).await.unwrap();
        let line = match tls {
            None => listen(socket).await,
            Some(tls) => match tls.accept(socket).await {
                Ok(socket) => listen(socket).await,
                Err(_) => return,
            },
        };
        let connect = line.strip_prefix("CONNECT ").unwrap();
        heard.send(serde_json::from_str(connect).unwrap()).unwrap();
    });
    (address, hear)
}

async fn listen(socket: impl AsyncRead + AsyncWrite + Unpin) -> String {
    let mut socket = BufReader::new(socket);
    let mut line = String::new();
    socket.read_line(&mut line).await.unwrap();
    let refusal = b"-ERR 'Authorization Violation'\r\n";
    socket.get_mut().write_all(refusal).await.unwrap();
    line
}

#[tokio::test]
async fn credentials_of_every_kind_are_sent() {
    let user = nkeys::KeyPair::new_user();
    let mut creds = NamedTempFile::new().unwrap();
    let text = format!(
        "-----BEGIN NATS USER JWT-----\na.b.c\n------END NATS USER JWT------\n\
         -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
        user.seed().unwrap()
    );
    creds.write_all(text.as_bytes()).unwrap();
    let creds = format!("creds = {{ file = '{}' }}", creds.path().display());
    let cases = [
        ("token = { env = 'SECRET_A' }", "auth_token", "value of SECRET_A"),
        ("user = 'me'\npassword = { env = 'SECRET_B' }", "pass", "value of SECRET_B"),
        (&creds, "jwt", "a.b.c"),
    ];
    for (config, name, value) in cases {
        let (address, heard) = greeter(None).await;
        let outcome = send(&at(address, config), &[item("1", "t", None)]).await;
        let expected = format!("{address} refuses the credentials");
        assert_eq!(outcome, Outcome::Broken(expected));
        let heard = heard.await.unwrap();
        assert_eq!(heard[name], value, "{heard}");
        assert_eq!(heard["sig"].is_string(), name == "jwt", "{heard}");
    }
}

#[tokio::test]
async fn tls_is_spoken_to_whom_is_trusted() {
    let (tls, certificate) = acceptor("127.0.0.1");
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(certificate.as_bytes()).unwrap();
    let ca_file = format!("ca_file = '{}'", file.path().display());
    let one = [item("1", "t", None)];

    let (address, heard) = greeter(Some(tls.clone())).await;
    let config: Config = declared(&format!("url = 'tls://{address}'\n{ca_file}"));
    let outcome = send(&Nats::new(&config, &secrets).unwrap(), &one).await;
    assert_eq!(outcome, Outcome::Broken(format!("{address} refuses the credentials")));
    assert_eq!(heard.await.unwrap()["tls_required"], true);

    let (address, _heard) = greeter(Some(tls)).await;
    let config: Config = declared(&format!("url = 'tls://{address}'"));
    let outcome = send(&Nats::new(&config, &secrets).unwrap(), &one).await;
    let Outcome::Broken(reason) = outcome else { panic!("{outcome:?}") };
    assert!(reason.contains("certificate that does not verify"), "{reason}");
}

#[test]
fn configs_that_cannot_be_are_refused_by_their_key() {
    let refused = |config: &str| match toml::from_str::<Config>(config) {
        Ok(config) => refusal(Nats::new(&config, &secrets)),
        Err(error) => error.to_string(),
    };
    let base = "url = 'nats://example.com'\n";
    let with = |rest: &str| refused(&format!("{base}{rest}"));
    assert!(with("subject = '{topics}'").contains("`subject` has `{topics}`"));
    assert!(with("subject = 'a b'").contains("`subject` cannot be"));
    assert!(with("user = 'a'").contains("`password` is missing"));
    assert!(with("token = 'abc'").contains("`token` holds a secret itself"));
    let two = "token = { env = 'SECRET_A' }\ncreds = { env = 'SECRET_B' }";
    assert!(with(two).contains("`token` stands beside another"));
    assert!(
        with("token = { env = 'SECRET_A' }").contains("sends secrets in the clear: use tls://")
    );
    assert!(with("creds = { env = 'SECRET_A' }").contains("`creds` holds no user's JWT"));
    assert!(with("streams = 'create'").contains("unknown field `streams`"));
    assert!(refused("url = []").contains("`url` is empty"));
    assert!(refused("url = 'nats://a:b@example.com'").contains("holds a user or a password"));
    assert!(refused("url = 'nats://127.0.0.1'").contains("is a loopback address"));
    assert!(refused("url = 'nats://example.com/x'").contains("`url` has a path"));
    let capabilities = at("127.0.0.1:1".parse().unwrap(), "").capabilities();
    assert_eq!((capabilities.name, capabilities.max_group), ("nats", 1000));
    assert_eq!(capabilities.connections, ["main"]);
}
