use super::*;
use crate::ticks::Ticks;
use proptest::prelude::*;
use tidegate_core::{
    Headers, NewMessage,
    outbox::{KeyHash, LANES},
};

fn outgoing(id: &str) -> Outgoing<'_> {
    Outgoing { id, created: Ticks(639_029_198_450_000_000), shard: 2 }
}

#[test]
fn an_item_is_as_brighter_writes_it() {
    let mut headers = Headers::new();
    headers.set("correlation-id", "c-1");
    headers.set("message-type", "MT_COMMAND");
    headers.set("ce-type", "order.placed");
    headers.set("x-tenant", "eu");
    let message = NewMessage {
        topic: "orders".to_owned(),
        key: Some("42".to_owned()),
        payload: br#"{"n":1}"#.to_vec(),
        headers,
        delay: None,
    };
    let item = encode(&message, outgoing("id-1")).unwrap();
    let texts = [
        ("MessageId", "id-1"),
        ("Topic", "orders"),
        ("TopicShard", "orders_2"),
        ("PartitionKey", "42"),
        ("MessageType", "MT_COMMAND"),
        ("CorrelationId", "c-1"),
        ("Type", "order.placed"),
        ("ContentType", "application/json"),
        ("CharacterEncoding", "UTF8"),
        ("HeaderBag", r#"{"x-tenant":"eu"}"#),
        ("CreatedAt", "2026-01-02T03:04:05.000Z"),
    ];
    for (name, value) in texts {
        assert_eq!(get_text(&item, name), Some(value), "{name}");
    }
    for name in ["CreatedTime", "OutstandingCreatedTime"] {
        assert_eq!(get_number(&item, name), Some(639_029_198_450_000_000_i64), "{name}");
    }
    assert_eq!(
        (get_number(&item, "HandledCount"), get_number(&item, "DelayedMilliseconds")),
        (Some(0), Some(0))
    );
    assert_eq!(item["Body"], bytes(br#"{"n":1}"#));
    for absent in
        ["DeliveryTime", "DeliveredAt", "ExpiresAt", "ReplyTo", name::NOT_BEFORE, name::ASIDE]
    {
        assert!(!item.contains_key(absent), "{absent}");
    }
}

/// As Brighter's own code writes it, with what its tables have in practice.
fn of_brighter() -> Item {
    let texts = [
        ("MessageId", "7a1c0f0e-5d6e-4a57-9d5b-0d7f3f2f8a11"),
        ("Topic", "orders"),
        ("TopicShard", "orders_-2"),
        ("PartitionKey", "42"),
        ("MessageType", "MT_EVENT"),
        ("CorrelationId", ""),
        ("ContentType", "application/json; charset=utf-8"),
        ("CharacterEncoding", "UTF8"),
        ("HeaderBag", r#"{"SessionId":"s-1","tries":3,"paramore.brighter.ProducerTopic":"local"}"#),
        ("CreatedAt", "2026-01-02T03:04:05.000Z"),
        ("Source", "http://goparamore.io"),
    ];
    let mut item: Item =
        texts.iter().map(|(name, value)| ((*name).to_owned(), text(*value))).collect();
    item.insert("Body".to_owned(), bytes(b"{}"));
    for name in ["CreatedTime", "OutstandingCreatedTime"] {
        item.insert(name.to_owned(), number(639_029_198_450_000_000_i64));
    }
    item
}

#[test]
fn what_brighter_wrote_is_read() {
    let found = decode(&of_brighter()).unwrap();
    assert_eq!((found.problem.as_deref(), found.shard.as_str()), (None, "orders_-2"));
    assert_eq!(found.message.key.as_deref(), Some("42"));
    assert_eq!(u64::from(found.lane.0), KeyHash::of("42").0 as u64 % u64::from(LANES));
    let headers = &found.message.headers;
    assert_eq!(headers.get("SessionId"), Some("s-1"));
    assert_eq!(headers.get("correlation-id"), None, "empty is absent");
    assert_eq!(headers.get("paramore.brighter.ProducerTopic"), None, "is local");
    let bag: Vec<(&str, &str)> = headers.further().unwrap().collect();
    assert_eq!(bag, [("SessionId", "\"s-1\""), ("tries", "3")]);
    assert_eq!(found.created.unix_ms(), 1_767_323_045_000);
}

#[test]
fn old_items_have_their_body_as_text_and_defaults_are_brighters() {
    let mut item = of_brighter();
    item.insert("Body".to_owned(), text("plain"));
    ["ContentType", "MessageType", "PartitionKey", "HeaderBag"]
        .iter()
        .for_each(|name| drop(item.remove(*name)));
    let found = decode(&item).unwrap();
    assert_eq!(found.message.payload, b"plain");
    assert_eq!((found.message.key, found.problem), (None, None));
    assert_eq!(found.message.headers.get("content-type"), Some("text/plain"));
    assert_eq!(found.message.headers.get("message-type"), Some("MT_NONE"));
}

#[test]
fn an_item_that_is_no_message_says_why() {
    let problem = |change: &dyn Fn(&mut Item)| {
        let mut item = of_brighter();
        change(&mut item);
        decode(&item).unwrap().problem.unwrap_or_default()
    };
    assert!(problem(&|item| drop(item.remove("Topic"))).contains("topic"));
    assert!(
        problem(&|item| drop(item.insert("HeaderBag".to_owned(), text("[1]"))))
            .contains("header bag")
    );
    assert!(
        problem(&|item| drop(item.insert("Body".to_owned(), AttributeValue::Bool(true))))
            .contains("body")
    );
    assert!(decode(&Item::new()).is_none());
}

#[test]
fn too_large_an_item_is_refused_before_it_is_sent() {
    let message = |bytes: usize| NewMessage {
        topic: "t".to_owned(),
        payload: format!("\"{}\"", "x".repeat(bytes)).into_bytes(),
        ..NewMessage::default()
    };
    encode(&message(400_000), outgoing("id")).unwrap();
    let error = encode(&message(409_600), outgoing("id")).unwrap_err().to_string();
    assert!(error.contains("DynamoDB takes 409600") && error.contains("S3"), "{error}");
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        topic in "[a-z._-]{1,20}",
        key in prop::option::of("[^\\p{C}]{1,30}"),
        payload in prop::collection::vec(any::<u8>(), 0..200),
        names in prop::collection::btree_map("[A-Za-z-]{1,12}", "[^\\p{C}]{1,20}", 0..6),
        delay in prop::option::of(0..1_000_000_u64),
    ) {
        let mut headers = Headers::new();
        names.iter().for_each(|(name, value)| headers.set(name, value));
        headers.set("content-type", "application/octet-stream");
        headers.set("message-type", "MT_EVENT");
        let delay = delay.map(std::time::Duration::from_millis);
        let message = NewMessage { topic, key, payload, headers, delay };
        let item = encode(&message, outgoing("id-1")).unwrap();
        let found = decode(&item).unwrap();
        prop_assert_eq!(&found.problem, &None);
        let all = |headers: &Headers| headers.iter().map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect::<std::collections::BTreeSet<_>>();
        prop_assert_eq!(all(&found.message.headers), all(&message.headers));
        prop_assert_eq!((&found.message.topic, &found.message.key, &found.message.payload),
            (&message.topic, &message.key, &message.payload));
        prop_assert_eq!(found.not_before, delay.map(|delay| outgoing("id-1").created.after(delay)));
        prop_assert_eq!(found.outstanding, Some(outgoing("id-1").created));
    }
}
