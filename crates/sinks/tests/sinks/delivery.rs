//! What is sent.

use crate::{
    canned::Canned,
    support::{deliver, done, http, start, try_http},
};
use futures_util::future::join_all;
use tidegate_core::{Sink, sink::Outcome};
use tidegate_drill::Spec;

const GROUP: &str = "body = 'array'";

#[tokio::test]
async fn what_comes_again_is_recognized_by_its_header() {
    let service = start(Spec::default());
    let sink = http(&format!("{}/records", service.url()), "");
    for _ in 0..2 {
        assert_eq!(deliver(&sink, &[r#"{"name":"a"}"#]).await.outcome, done(1));
    }
    let other = http(&format!("{}/records", service.url()), "id_header = ''");
    assert_eq!(deliver(&other, &[r#"{"name":"b"}"#]).await.outcome, done(1));
    let seen = service.counters();
    assert_eq!((seen.records, seen.duplicates), (2, 1));
}

#[tokio::test]
async fn what_comes_again_is_recognized_by_its_field() {
    for body in ["ndjson", "array"] {
        let service = start(Spec::default());
        let config = format!("body = '{body}'\nid_field = 'id'");
        let sink = http(&format!("{}/records", service.url()), &config);
        // The same payload twice, under two ids; the last has its own.
        let payloads = ["{\n\"a\":1}", "{\n\"a\":1}", "{\"id\":\"own\"}"];
        assert_eq!(deliver(&sink, &payloads).await.outcome, done(3));
        let seen = service.counters();
        assert_eq!((seen.records, seen.duplicates), (3, 0), "{body}");
        assert_eq!(deliver(&sink, &payloads).await.outcome, done(3));
        let seen = service.counters();
        assert_eq!((seen.records, seen.duplicates), (3, 3), "{body}");
    }
}

#[tokio::test]
async fn records_have_addresses_of_their_own() {
    let service = start(Spec::default());
    let url = format!("{}/records/{{key}}", service.url());
    for method in ["PUT", "PATCH", "DELETE"] {
        let sink = http(&url, &format!("method = '{method}'\nid_header = ''"));
        let operation = sink.capabilities().operation;
        assert_eq!(operation, method.to_ascii_lowercase());
        assert_eq!(deliver(&sink, &[r#"{"key":"a b/c"}"#]).await.outcome, done(1));
    }
    let seen = service.counters();
    assert_eq!((seen.records, seen.duplicates, seen.accepted), (2, 1, 3));

    let sink = http(&url, "method = 'DELETE'");
    let outcome = deliver(&sink, &[r#"{"key":".."}"#]).await.outcome;
    assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
    assert_eq!(service.counters().requests, 3, "nothing was sent");
}

#[tokio::test]
async fn requests_carry_what_is_declared() {
    let service = Canned::start("200 OK", "{}").await;
    let config = "headers = { x-team = 'blue', x-api-key = { env = 'SECRET_KEY' } }\n\
                  basic = { user = 'me', password = { env = 'SECRET_WORD' } }";
    let sink = http(&format!("{}/a?b=c", service.url), config);
    assert_eq!(deliver(&sink, &["{\"n\":1}"]).await.outcome, done(1));
    let asked = service.asked().pop().unwrap().to_ascii_lowercase();
    for part in [
        "post /a?b=c http/1.1\r\n",
        "\r\nx-team: blue\r\n",
        "\r\nx-api-key: value of secret_key\r\n",
        "\r\nidempotency-key: item-0\r\n",
        "\r\ncontent-type: application/json\r\n",
        "\r\nauthorization: basic ",
        "\r\n\r\n{\"n\":1}",
    ] {
        assert!(asked.contains(part), "{part} in {asked}");
    }
    assert!(!asked.contains("cookie"), "{asked}");
}

#[tokio::test]
async fn connections_are_used_again() {
    let service = start(Spec::default());
    let sink = http(&format!("{}/records", service.url()), "");
    for _ in 0..20 {
        assert_eq!(deliver(&sink, &["{}"]).await.outcome, done(1));
    }
    assert_eq!(service.counters().connections, 1);
}

#[tokio::test]
async fn hundreds_of_requests_keep_their_connections() {
    let delay = std::time::Duration::from_millis(50);
    let service = start(Spec { delay, ..Spec::default() });
    let sink = http(&format!("{}/records", service.url()), "");
    for _ in 0..3 {
        let requests = (0..200).map(|_| deliver(&sink, &["{}"]));
        for answer in join_all(requests).await {
            assert_eq!(answer.outcome, done(1));
        }
    }
    let seen = service.counters();
    assert_eq!(seen.accepted, 600);
    assert!(seen.connections <= 220, "{}", seen.connections);
}

#[tokio::test]
async fn a_check_delivers_nothing() {
    let service = start(Spec::default());
    let records = format!("{}/records", service.url());
    http(&records, "").check().await.unwrap();
    http(&records, "check = '/health'").check().await.unwrap();
    let error = http(&records, "check = '/nowhere'").check().await.unwrap_err().to_string();
    assert!(error.starts_with("`check` at /nowhere failed: it answered 404"), "{error}");
    assert_eq!(service.counters().requests, 0);
}

#[test]
fn capabilities_follow_from_the_config() {
    let of = |rest: &str| http("https://example.com/x", rest).capabilities();
    let single = of("");
    assert_eq!((single.name, single.max_group, single.operation.as_str()), ("http", 1, "post"));
    assert_eq!((single.connections, single.budgets), (vec!["main".to_owned()], vec![]));
    assert_eq!(of(GROUP).max_group, 100);
    assert_eq!(of("body = 'ndjson'\nmax_group = 10_000").max_group, 10_000);
    assert_eq!(of("operation = 'bulk'").operation, "bulk");
}

#[test]
fn configs_that_cannot_be_are_refused_by_their_key() {
    let cases = [
        ("max_group = 2", "`max_group` is 2, but with `body` = \"item\""),
        ("body = 'array'\nmax_group = 10_001", "`max_group` is 10001: use 1 to 10000"),
        ("timeout = 0", "`timeout` is 0 s"),
        ("check = 'health'", "`check` is no path"),
        ("headers = { host = 'x' }", "`headers.host` follows from the request"),
        ("headers = { Authorization = 'x' }", "`headers.Authorization` holds a secret itself"),
        ("headers = { 'a b' = 'x' }", "`headers.a b` names no header"),
        ("ca_file = '/nowhere/ca.pem'", "`ca_file` cannot be used (/nowhere/ca.pem)"),
        ("timeuot = 1", "unknown field `timeuot`"),
        ("method = 'GET'", "unknown variant `GET`"),
        ("allow = ['localhost:80']", "`localhost:80` allows nothing"),
    ];
    for (rest, expected) in cases {
        let error = try_http("https://example.com/x", rest).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}
