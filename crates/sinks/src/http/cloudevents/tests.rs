use super::*;
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};
use tidegate_core::Headers;

fn item<'a>(headers: &'a Headers, payload: &'a [u8]) -> Item<'a> {
    let published_at = Some(SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_250));
    let record = Item::record("m-1", "");
    Item { topic: "orders.v1", key: Some("Köln 7"), headers, payload, published_at, ..record }
}

fn event(pairs: &[(&str, &str)], payload: &[u8]) -> Value {
    let headers = Headers::from_iter(pairs.iter().copied());
    let (sent, body) = structured(&item(&headers, payload), "tidegate").unwrap();
    assert_eq!(sent[CONTENT_TYPE], "application/cloudevents+json");
    serde_json::from_slice(&body).unwrap()
}

fn in_headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let headers = Headers::from_iter(pairs.iter().copied());
    let (sent, body) = binary(&item(&headers, b"\xff"), "tidegate").unwrap();
    assert_eq!(body, b"\xff");
    sent
}

#[test]
fn an_event_follows_from_its_message() {
    let expected = json!({
        "specversion": "1.0",
        "id": "m-1",
        "source": "tidegate",
        "type": "orders.v1",
        "subject": "Köln 7",
        "time": "2023-11-14T22:13:20.25Z",
        "datacontenttype": "application/json",
        "data": { "n": 1.5 },
    });
    assert_eq!(event(&[], br#"{"n":1.5}"#), expected);
}

#[test]
fn what_the_publisher_sets_goes_first() {
    let event = event(
        &[
            ("ce-type", "com.acme.paid"),
            ("Ce-Subject", "invoice"),
            ("ce-source", "/shop"),
            ("ce-tenant", "north"),
            ("ce-specversion", "0.3"),
            ("ce-datacontenttype", "text/wrong"),
            ("traceparent", "00-a-b-01"),
            ("x-other", "kept out of the event"),
        ],
        b"",
    );
    let expected = json!({
        "specversion": "1.0",
        "id": "m-1",
        "source": "/shop",
        "type": "com.acme.paid",
        "subject": "invoice",
        "time": "2023-11-14T22:13:20.25Z",
        "tenant": "north",
        "traceparent": "00-a-b-01",
        "datacontenttype": "application/json",
    });
    assert_eq!(event, expected);
}

#[test]
fn data_is_json_or_text_or_bytes() {
    let kind = |kind: &'static str| [("content-type", kind)];
    assert_eq!(event(&[], b"null")["data"], Value::Null);
    assert!(event(&[], b"null").as_object().unwrap().contains_key("data"));
    assert_eq!(event(&kind("application/vnd.acme+json"), b"[1]")["data"], json!([1]));
    assert_eq!(event(&kind("text/plain; charset=utf-8"), b"a\"b")["data"], "a\"b");
    assert_eq!(event(&kind("application/xml"), b"<a/>")["data"], "<a/>");
    let bytes = event(&kind("application/octet-stream"), b"abc");
    assert_eq!((&bytes["data_base64"], &bytes["data"]), (&json!("YWJj"), &Value::Null));
    assert_eq!(event(&kind("text/plain"), b"\xff")["data_base64"], "/w==");
    assert_eq!(event(&[], b"{no json")["data_base64"], "e25vIGpzb24=");
}

#[test]
fn attributes_become_headers_that_can_be_read_back() {
    let sent = in_headers(&[
        ("content-type", "image/png"),
        ("ce-tenant", "Euro \u{20ac} \u{1f600}"),
        ("ce-quoted", "a\"b%c~"),
        ("traceparent", "00-a-b-01"),
        ("x-other", "passed on"),
    ]);
    let expected = [
        ("content-type", "image/png"),
        ("ce-specversion", "1.0"),
        ("ce-id", "m-1"),
        ("ce-source", "tidegate"),
        ("ce-type", "orders.v1"),
        ("ce-subject", "K%C3%B6ln%207"),
        ("ce-time", "2023-11-14T22:13:20.25Z"),
        // The example of the specification.
        ("ce-tenant", "Euro%20%E2%82%AC%20%F0%9F%98%80"),
        ("ce-quoted", "a%22b%25c~"),
        ("ce-traceparent", "00-a-b-01"),
        ("traceparent", "00-a-b-01"),
        ("x-other", "passed on"),
    ];
    for (name, value) in expected {
        assert_eq!(sent[name], value, "{name}");
    }
    assert_eq!(sent.len(), expected.len(), "{sent:?}");
}

#[test]
fn a_name_that_no_attribute_has_is_refused() {
    for name in ["ce-my_ext", "ce-", "ce-data", "ce-data_base64", "ce-a-b"] {
        let headers = Headers::from_iter([(name, "x")]);
        let error = structured(&item(&headers, b"{}"), "tidegate").unwrap_err();
        assert!(error.starts_with(&format!("header `{name}` names no attribute")), "{error}");
    }
}

#[test]
fn a_record_is_an_event_as_well() {
    let (_, body) = structured(&Item::record("r-1", "{}"), "tidegate").unwrap();
    let event: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((&event["type"], &event["id"]), (&json!("tidegate.record"), &json!("r-1")));
    assert_eq!(event["subject"], Value::Null);
}
