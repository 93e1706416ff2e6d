//! Streams of a real Redis.

use crate::{
    brokers::{
        comes_and_goes, declared, item, refusal, retry, secrets, send, server, unique, verdicts,
    },
    gate::Gate,
};
use redis::{
    AsyncCommands, Client,
    aio::MultiplexedConnection,
    streams::{StreamId, StreamRangeReply},
};
use std::{
    io::Write,
    net::SocketAddr,
    time::{Duration, UNIX_EPOCH},
};
use tempfile::NamedTempFile;
use tidegate_core::{
    Headers,
    sink::{Item, Outcome, Sink, Verdict},
};
use tidegate_sinks::redis::{Config, Redis};

fn at(address: SocketAddr, rest: &str) -> Redis {
    let config: Config = declared(&format!("url = 'redis://{address}'\n{rest}"));
    Redis::new(&config, &secrets).unwrap()
}

fn sink(rest: &str) -> Redis {
    at(redis(), rest)
}

fn redis() -> SocketAddr {
    server("TIDEGATE_TEST_REDIS")
}

/// A connection that looks into the server.
async fn looker() -> MultiplexedConnection {
    let client = Client::open(format!("redis://{}", redis())).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

async fn entries(stream: &str) -> Vec<StreamId> {
    let range: StreamRangeReply = looker().await.xrange_all(stream).await.unwrap();
    range.ids
}

fn field(entry: &StreamId, name: &str) -> Option<String> {
    entry.get(name)
}

#[tokio::test]
async fn an_entry_has_all_that_its_item_has() {
    let topic = unique("orders");
    let own = Headers::from_iter([("content-type", "text/plain"), ("ce-type", "created")]);
    let full = Item {
        headers: &own,
        payload: b"\x00\xffbytes",
        published_at: Some(UNIX_EPOCH + Duration::from_millis(1_700_000_000_123)),
        ..item("m1", &topic, Some("k"))
    };
    let sink = sink("");
    sink.check().await.unwrap();
    let items = [full, item("m2", &topic, None)];
    assert_eq!(verdicts(&sink, &items).await, [Verdict::Done, Verdict::Done]);
    let found = entries(&topic).await;
    assert_eq!(found.len(), 2);
    assert_eq!(field(&found[0], "id").as_deref(), Some("m1"));
    assert_eq!(field(&found[0], "topic"), Some(topic));
    assert_eq!(field(&found[0], "key").as_deref(), Some("k"));
    assert_eq!(field(&found[0], "published_at").as_deref(), Some("1700000000123"));
    let headers = r#"{"ce-type":"created","content-type":"text/plain"}"#;
    assert_eq!(field(&found[0], "headers").as_deref(), Some(headers));
    assert_eq!(found[0].get::<Vec<u8>>("payload").unwrap(), b"\x00\xffbytes");
    assert_eq!(field(&found[1], "key"), None);
    assert_eq!(field(&found[1], "headers").as_deref(), Some("{}"));
}

#[tokio::test]
async fn items_of_a_key_keep_their_order_and_stop_at_one_that_fails() {
    let (topic, taken) = (unique("orders"), unique("taken"));
    let _: () = looker().await.set(&taken, "no stream").await.unwrap();
    let items = [
        item("1", &topic, Some("a")),
        item("2", &taken, Some("a")),
        item("3", &topic, Some("a")),
        item("4", &topic, Some("b")),
        item("5", &topic, Some("b")),
    ];
    let verdicts = verdicts(&sink(""), &items).await;
    assert_eq!(verdicts[0], Verdict::Done);
    assert!(retry(&verdicts[1]).starts_with(&format!("`{taken}` is there, but is no stream")));
    assert_eq!(verdicts[2..], [Verdict::Behind, Verdict::Done, Verdict::Done]);
    let found: Vec<_> = entries(&topic).await.iter().filter_map(|it| field(it, "id")).collect();
    assert_eq!(found, ["1", "4", "5"]);
}

#[tokio::test]
async fn a_thousand_go_together_and_old_ones_are_trimmed_if_that_is_declared() {
    let topic = unique("orders");
    let ids: Vec<String> = (0..1000).map(|id| format!("{id:04}")).collect();
    let items: Vec<_> = ids.iter().map(|id| item(id, &topic, None)).collect();
    let done = vec![Verdict::Done; 1000];
    assert_eq!(verdicts(&sink(""), &items).await, done);
    let found = entries(&topic).await;
    let mut found: Vec<_> = found.iter().filter_map(|it| field(it, "id")).collect();
    found.sort_unstable();
    assert_eq!(found, ids);
    assert_eq!(verdicts(&sink("maxlen = 100"), &items).await, done);
    let left = entries(&topic).await.len();
    assert!((100..1000).contains(&left), "{left}");
}

#[tokio::test]
async fn a_server_may_come_and_go() {
    let topic = unique("orders");
    comes_and_goes(redis(), &topic, at).await;
}

#[tokio::test]
async fn what_is_larger_than_redis_takes_is_dead_alone() {
    let topic = unique("orders");
    let large = vec![b'x'; (2 << 20) + 1];
    let items = [
        item("1", &topic, Some("a")),
        Item { payload: &large, ..item("2", &topic, Some("b")) },
        Item { payload: &large[1..], ..item("3", &topic, Some("c")) },
    ];
    let verdicts = verdicts(&sink(""), &items).await;
    let Verdict::Dead(reason) = &verdicts[1] else { panic!("{verdicts:?}") };
    assert!(reason.contains("proto-max-bulk-len"), "{reason}");
    assert_eq!((&verdicts[0], &verdicts[2]), (&Verdict::Done, &Verdict::Done));
}

#[tokio::test]
async fn a_user_who_is_refused_breaks_the_sink_and_the_password_does_not_show() {
    let user = unique("user");
    let topic = unique("orders");
    let mut looker = looker().await;
    let rules = ["on", ">value of SECRET_WORD", "~*", "+@all", "-xadd"];
    let mut command = redis::cmd("ACL");
    command.arg("SETUSER").arg(&user).arg(&rules);
    let _: () = command.query_async(&mut looker).await.unwrap();
    let as_user = |word: &str| sink(&format!("user = '{user}'\npassword = {{ env = '{word}' }}"));

    let one = [item("1", &topic, None)];
    let Outcome::Broken(reason) = send(&as_user("SECRET_WORD"), &one).await else { panic!() };
    assert!(reason.contains("NOPERM"), "{reason}");

    let wrong = as_user("SECRET_OTHER");
    let Outcome::Broken(reason) = send(&wrong, &one).await else { panic!() };
    let error = wrong.check().await.unwrap_err().to_string();
    for text in [reason, error, format!("{wrong:?}")] {
        assert!(!text.contains("value of"), "{text}");
    }
    let error = wrong.check().await.unwrap_err().to_string();
    assert!(error.starts_with("Redis refuses the credentials"), "{error}");
}

#[tokio::test]
async fn a_database_that_is_not_there_is_told() {
    let config: Config = declared(&format!("url = 'redis://{}/9999'", redis()));
    let sink = Redis::new(&config, &secrets).unwrap();
    let error = sink.check().await.unwrap_err().to_string();
    assert!(error.contains("database") || error.contains("DB index"), "{error}");
}

#[tokio::test]
async fn entries_go_by_tls_to_whom_is_trusted() {
    let topic = unique("orders");
    let (gate, certificate) = Gate::secured(redis());
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(certificate.as_bytes()).unwrap();
    let url = format!("url = 'rediss://{}'", gate.address());
    let trusting: Config = declared(&format!("{url}\nca_file = '{}'", file.path().display()));
    let sink = Redis::new(&trusting, &secrets).unwrap();
    assert_eq!(verdicts(&sink, &[item("1", &topic, None)]).await, [Verdict::Done]);
    let sink = Redis::new(&declared(&url), &secrets).unwrap();
    let Outcome::Broken(reason) = send(&sink, &[item("1", &topic, None)]).await else { panic!() };
    assert!(reason.contains("certificate that does not verify"), "{reason}");
}

#[test]
fn configs_that_cannot_be_are_refused_by_their_key() {
    let refused = |config: &str| match toml::from_str::<Config>(config) {
        Ok(config) => refusal(Redis::new(&config, &secrets)),
        Err(error) => error.to_string(),
    };
    let cases = [
        ("url = 'redis://example.com'\nstream = '{topics}'", "`stream` has `{topics}`"),
        ("url = 'http://example.com'", "`url` begins with `http:`: use redis:// or rediss://"),
        ("url = 'redis://:word@example.com'", "`url` holds a user or a password"),
        ("url = 'redis://127.0.0.1'", "`url` is out of bounds: 127.0.0.1 is a loopback address"),
        (
            "url = 'redis://example.com'\npassword = { env = 'SECRET_A' }",
            "`url` sends secrets in the clear: use rediss://",
        ),
        ("url = 'redis://example.com'\nmax_group = 0", "`max_group` is 0: use 1 to 10000"),
        ("url = 'redis://example.com'\ntimeout = 0", "`timeout` is 0 s"),
        ("url = 'redis://example.com'\nmaxlength = 1", "unknown field `maxlength`"),
    ];
    for (config, expected) in cases {
        let error = refused(config);
        assert!(error.contains(expected) && !error.contains("word@"), "{error}");
    }
    let capabilities = at("127.0.0.1:1".parse().unwrap(), "").capabilities();
    assert_eq!((capabilities.name, capabilities.max_group), ("redis", 1000));
    assert_eq!(capabilities.operation, "publish");
    assert!(capabilities.mixes_topics);
}
