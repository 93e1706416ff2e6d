//! Messages over HTTP.

use crate::{
    canned::Canned,
    support::{done, http, try_http},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use ring::hmac;
use serde_json::Value;
use tidegate_core::{
    Headers, Sink,
    sink::{Answer, Delivery, Item, Outcome},
};
use tidegate_sinks::http::Http;

const SECRET: &str = "dGhlIHNlY3JldCBvZiB0aGUgdGVzdHMgaXMgbG9uZw==";

/// A message that has all.
async fn deliver(sink: &Http, pairs: &[(&str, &str)], payload: &[u8]) -> Answer {
    let headers = Headers::from_iter(pairs.iter().copied());
    let (topic, key) = ("orders/v1", Some("a b"));
    let item = Item { topic, key, headers: &headers, payload, ..Item::record("m-1", "") };
    sink.deliver(Delivery { connection: 0, items: &[item] }).await
}

/// The head in lower case, and the body.
fn asked(service: &Canned) -> (String, String) {
    let asked = service.asked().pop().unwrap();
    let (head, body) = asked.split_once("\r\n\r\n").unwrap();
    (head.to_ascii_lowercase(), body.to_owned())
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

#[tokio::test]
async fn a_message_is_sent_as_it_is() {
    let service = Canned::start("202 Accepted", "").await;
    let config = "body = 'message'\nbearer = { env = 'SECRET_A' }\nheaders = { x-tenant = 'ours' }";
    let sink = http(&format!("{}/in/{{topic}}/{{key}}?id={{id}}", service.url), config);
    let capabilities = sink.capabilities();
    assert_eq!((capabilities.max_group, capabilities.operation.as_str()), (1, "post"));
    let pairs = [
        ("content-type", "text/plain"),
        ("traceparent", "00-a-b-01"),
        ("x-tenant", "theirs"),
        ("authorization", "Bearer forged"),
        ("host", "evil.example"),
    ];
    let outcome = deliver(&sink, &pairs, b"not { json").await.outcome;
    assert_eq!(outcome, done(1));
    let (head, body) = asked(&service);
    assert!(head.starts_with("post /in/orders%2fv1/a%20b?id=m-1 http/1.1"), "{head}");
    assert_eq!(body, "not { json");
    assert_eq!(header(&head, "content-type"), Some("text/plain"));
    assert_eq!(header(&head, "idempotency-key"), Some("m-1"));
    assert_eq!(header(&head, "traceparent"), Some("00-a-b-01"));
    assert_eq!(header(&head, "x-tenant"), Some("ours"));
    assert_eq!(header(&head, "authorization"), Some("bearer value of secret_a"));
    assert_eq!(head.matches("authorization").count(), 1, "{head}");
    assert!(!head.contains("evil"), "{head}");
}

#[tokio::test]
async fn a_message_is_sent_as_an_event() {
    let service = Canned::start("200 OK", "").await;
    let sink = http(&service.url, "body = 'cloudevents'\nsource = '/shop'");
    assert_eq!(deliver(&sink, &[("ce-type", "paid")], b"{\"n\":1}").await.outcome, done(1));
    let (head, body) = asked(&service);
    assert_eq!(header(&head, "content-type"), Some("application/cloudevents+json"));
    let event: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((&event["source"], &event["type"]), (&"/shop".into(), &"paid".into()));
    assert_eq!((&event["id"], &event["data"]["n"]), (&"m-1".into(), &1.into()));

    let sink = http(&service.url, "body = 'cloudevents-binary'");
    assert_eq!(deliver(&sink, &[], b"{\"n\":1}").await.outcome, done(1));
    let (head, body) = asked(&service);
    assert_eq!(header(&head, "ce-subject"), Some("a%20b"));
    assert_eq!(header(&head, "ce-type"), Some("orders/v1"));
    assert_eq!(
        (header(&head, "content-type"), body.as_str()),
        (Some("application/json"), "{\"n\":1}")
    );
}

#[tokio::test]
async fn a_signature_verifies_with_the_secret() {
    let service = Canned::start("204 No Content", "").await;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file, format!("whsec_{SECRET}\n").as_bytes()).unwrap();
    let path = file.path().display();
    for body in ["item", "message", "cloudevents", "cloudevents-binary"] {
        let config = format!("body = '{body}'\nsigning = {{ file = '{path}' }}");
        let sink = http(&service.url, &config);
        assert!(!format!("{sink:?}").contains(SECRET));
        assert_eq!(deliver(&sink, &[], b"{\"n\":1}").await.outcome, done(1));
        let asked = service.asked().pop().unwrap();
        let (head, sent) = asked.split_once("\r\n\r\n").unwrap();
        let (id, timestamp) =
            (header(head, "webhook-id").unwrap(), header(head, "webhook-timestamp").unwrap());
        assert_eq!(id, "m-1");
        let signature = header(head, "webhook-signature").unwrap().strip_prefix("v1,").unwrap();
        let key = hmac::Key::new(hmac::HMAC_SHA256, &STANDARD.decode(SECRET).unwrap());
        let signed = format!("{id}.{timestamp}.{sent}");
        let signature = STANDARD.decode(signature).unwrap();
        assert!(hmac::verify(&key, signed.as_bytes(), &signature).is_ok(), "{body}");
    }
}

#[tokio::test]
async fn a_receiver_that_is_gone_is_not_asked_again() {
    let service = Canned::start("410 Gone", r#"{"error":"moved away"}"#).await;
    let reason = "the receiver is gone for good (410): moved away".to_owned();
    for (path, expected) in
        [("hook", Outcome::Gone(reason.clone())), ("{key}", Outcome::Refused(reason))]
    {
        let sink = http(&format!("{}/{path}", service.url), "body = 'message'");
        assert_eq!(deliver(&sink, &[], b"{}").await.outcome, expected);
    }
}

#[tokio::test]
async fn an_event_that_cannot_be_is_refused_before_it_is_sent() {
    let service = Canned::start("200 OK", "").await;
    let sink = http(&service.url, "body = 'cloudevents'");
    let outcome = deliver(&sink, &[("ce-my_ext", "secret")], b"{}").await.outcome;
    let Outcome::Refused(reason) = outcome else { panic!("{outcome:?}") };
    assert!(reason.contains("`ce-my_ext`") && !reason.contains("secret"), "{reason}");
    assert_eq!(service.asked(), [""; 0]);
}

#[test]
fn configs_that_cannot_be_are_refused_by_their_key() {
    let cases = [
        ("body = 'message'\nmax_group = 2", "`max_group` is 2, but with `body` = \"message\""),
        ("body = 'array'\nsigning = { env = 'SECRET_A' }", "`signing` signs one item per request"),
        ("body = 'message'\nsigning = { env = 'SECRET_A' }", "`signing` is no secret of Standard"),
        ("body = 'message'\nsigning = 'abc'", "`signing` holds a secret itself"),
        ("body = 'message'\nsigning = { env = 'NONE' }", "`signing` needs the variable NONE"),
        ("source = 'x'", "`source` is of CloudEvents only"),
        ("body = 'cloud-events'", "unknown variant `cloud-events`"),
    ];
    for (rest, expected) in cases {
        let error = try_http("https://example.com/x", rest).unwrap_err();
        assert!(error.contains(expected) && !error.contains("value of"), "{error}");
    }
    let field = try_http("https://example.com/{name}", "body = 'message'").unwrap_err();
    assert!(field.contains("{topic}, {key} and {id}"), "{field}");
}
