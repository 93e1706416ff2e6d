//! Messages come in: whole, in order, or not at all.

use super::{
    bench::Bench,
    relay::{Relay, ids, new_message},
};
use crate::harness::{AT_ONCE, LATER, at_once};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_core::{
    Headers, Kind, MessageId, NewMessage,
    limits::{MAX_HEADER_BYTES, MAX_KEY_BYTES, MAX_PAYLOAD_BYTES, MAX_TOPIC_BYTES},
    outbox::{LANES, Origin},
};

fn bytes(length: usize) -> NewMessage {
    let headers = Headers::from_iter([("content-type", "application/octet-stream")]);
    NewMessage { payload: vec![7; length], headers, ..new_message("bytes", None) }
}

/// A set of headers of exactly so many bytes.
fn headers(bytes: usize) -> Headers {
    Headers::from_iter([("h", "\"".repeat(bytes - 1))])
}

pub(crate) async fn what_is_published_is_read_as_it_was(bench: Bench) {
    let relay = Relay::start(&bench, "a").await;
    let texts =
        ["plain", "it's", "\"quoted\" \\ {}", "größer", "日本語", "🦀 ?[a-z]", "a%b_c", " "];
    let published: Vec<NewMessage> = texts
        .iter()
        .map(|text| NewMessage {
            topic: (*text).to_owned(),
            key: Some((*text).to_owned()),
            payload: [b"\0\xff\xfe".as_slice(), text.as_bytes()].concat(),
            headers: Headers::from_iter([("content-type", "x/y"), ("X-Text", *text)]),
            delay: None,
        })
        .chain([new_message("no key", None), bytes(0)])
        .collect();
    let given = bench.publish(published.clone()).await;
    let read = relay.read().await;
    assert_eq!(ids(&read), given);
    let adds_headers = bench.publishing().is_none_or(|it| it.adds_headers);
    for (message, published) in read.iter().zip(published) {
        assert_eq!(message.topic, published.topic);
        assert_eq!(message.key, published.key);
        assert_eq!(message.payload, published.payload);
        for (name, value) in published.headers.iter() {
            assert!(message.headers.iter().any(|header| header == (name, value)), "{name}");
        }
        assert!(message.headers == published.headers || adds_headers);
        assert_eq!(message.origin, Origin::Lane { due_in: None });
        assert!(message.lane.0 < LANES && message.published_ms > 0);
        assert!(message.name.ends_with(&message.id.to_string()), "{}", message.name);
    }
}

pub(crate) async fn ids_grow_within_a_call_and_from_call_to_call(bench: Bench) {
    let mut all = Vec::new();
    for many in [1, 5, 1, 300] {
        let messages = (0..many).map(|_| new_message("t", "k")).collect();
        all.extend(bench.publish(messages).await);
    }
    assert!(all.is_sorted_by(|one, next| one < next), "{all:?}");
    assert_eq!(bench.publish(Vec::new()).await, [], "nothing to publish is fine");
    let relay = Relay::start(&bench, "a").await;
    assert_eq!(ids(&relay.read().await), all);
}

pub(crate) async fn what_cannot_be_held_is_refused_and_nothing_is_stored(bench: Bench) {
    let ok = || new_message("t", "k");
    let topic = |topic: String| NewMessage { topic, ..ok() };
    let key = |key: String| NewMessage { key: Some(key), ..ok() };
    let with = |headers| NewMessage { headers, ..ok() };
    let json = |payload: &str| NewMessage { payload: payload.into(), ..ok() };
    let declared = |media_type: &str| NewMessage {
        headers: Headers::from_iter([("content-type", media_type)]),
        ..json("{no json}")
    };
    let refused = [
        topic(String::new()),
        topic("a*".into()),
        topic("line\nbreak".into()),
        topic("nul\0".into()),
        topic("t".repeat(MAX_TOPIC_BYTES + 1)),
        topic("é".repeat(MAX_TOPIC_BYTES / 2 + 1)),
        key(String::new()),
        key("line\nbreak".into()),
        key("delete\u{7f}".into()),
        key("\u{9f}".into()),
        key("nul\0".into()),
        key("k".repeat(MAX_KEY_BYTES + 1)),
        bytes(MAX_PAYLOAD_BYTES + 1),
        with(headers(MAX_HEADER_BYTES + 1)),
        with(Headers::from_iter([("a", "nul\0")])),
        json(""),
        json("{\"a\":1} x"),
        declared("application/json; charset=utf-8"),
        declared("application/vnd.acme+json"),
    ];
    for message in refused {
        let shown = format!("{:.80?}", message);
        let answer = bench.store.publish(vec![ok(), message, ok()]).await;
        let error = answer.expect_err(&format!("it must be refused: {shown}"));
        assert_eq!((error.kind(), error.is_passing()), (Kind::Refused, false), "{error}");
    }
    assert_eq!(Relay::start(&bench, "a").await.read().await, []);
    assert_eq!(bench.outbox().await.topics, []);
}

pub(crate) async fn the_largest_that_can_be_held_is_held(bench: Bench) {
    let largest = NewMessage {
        topic: "t".repeat(MAX_TOPIC_BYTES),
        key: Some("k".repeat(MAX_KEY_BYTES)),
        ..bytes(bench.publishing().map_or(MAX_PAYLOAD_BYTES, |it| it.largest_payload))
    };
    let media_type = "content-type".len() + "text/plain".len();
    let mut all_headers = headers(MAX_HEADER_BYTES - media_type);
    all_headers.set("content-type", "text/plain");
    let largest = NewMessage { headers: all_headers, ..largest };
    let decorated = NewMessage { headers: headers(MAX_HEADER_BYTES), ..new_message("t", "k") };
    let text = Headers::from_iter([("content-type", "text/plain")]);
    let no_json = NewMessage { payload: b"{".to_vec(), headers: text, ..new_message("t", "k") };
    bench.publish(vec![largest.clone(), decorated.clone(), no_json]).await;
    let mut reader = Relay::start(&bench, "a").await;
    let read = reader.read().await;
    assert_eq!((&read[0].topic, &read[0].key), (&largest.topic, &largest.key));
    assert!(read[0].payload == largest.payload);
    for (message, published) in read.iter().zip([&largest, &decorated]) {
        for (name, value) in published.headers.iter() {
            assert_eq!(message.headers.get(name), Some(value));
        }
    }
    reader.finish().await;
}

pub(crate) async fn a_delay_is_told_to_the_reader(bench: Bench) {
    let delayed = |delay| NewMessage { delay: Some(delay), ..new_message("t", "k") };
    bench.publish(vec![delayed(LATER), delayed(AT_ONCE), new_message("t", "k")]).await;
    let read = Relay::start(&bench, "a").await.read().await;
    let due: Vec<_> = read
        .iter()
        .map(|message| match message.origin {
            Origin::Lane { due_in } => due_in,
            Origin::Aside { .. } => panic!("it was not set aside"),
        })
        .collect();
    assert!(due[0].is_some_and(|due| due <= LATER && due > LATER / 2), "{due:?}");
    assert_eq!(due[1..], [None, None]);
}

pub(crate) async fn a_key_has_one_lane_and_keys_spread_over_all(bench: Bench) {
    type Make = fn(usize) -> String;
    let kinds: [(&str, Make); 6] = [
        ("numbers", |n| n.to_string()),
        ("padded", |n| format!("order-{n:08}")),
        ("prefixed", |n| format!("tenant-{}/customer-{}", n % 7, n / 7)),
        ("emails", |n| format!("user{n:05}@example.com")),
        ("uuids", |n| {
            let bits = (n as u128 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C834);
            let text = format!("{bits:032x}");
            format!("{}-{}-{}", &text[..8], &text[8..20], &text[20..])
        }),
        ("long", |n| format!("urn:example:object:{n:06}:of-the-collection-of-all-objects")),
    ];
    const KEYS: usize = 1_280;
    for (kind, make) in kinds {
        let message = |n| NewMessage { key: Some(make(n)), ..new_message(kind, None) };
        bench.publish((0..KEYS).map(message).collect()).await;
        bench.publish((0..100).map(message).collect()).await;
    }
    let relay = Relay::start(&bench, "a").await;
    let mut lanes = BTreeMap::new();
    let mut counts: BTreeMap<String, BTreeMap<u16, usize>> = BTreeMap::new();
    for message in relay.read().await {
        let key = (message.topic.clone(), message.key.expect("it has one"));
        match lanes.insert(key, message.lane) {
            Some(lane) => assert_eq!(lane, message.lane, "one key, one lane"),
            None => {
                *counts.entry(message.topic).or_default().entry(message.lane.0).or_default() += 1
            }
        }
    }
    for (kind, lanes) in counts {
        let most = lanes.values().max().copied().unwrap_or_default();
        assert!(lanes.len() >= 60, "{kind}: {} lanes", lanes.len());
        assert!(most <= 4 * KEYS / usize::from(LANES), "{kind}: {most} keys in one lane");
    }
}

pub(crate) async fn without_a_key_messages_spread_over_the_lanes(bench: Bench) {
    bench.publish((0..640).map(|_| new_message("t", None)).collect()).await;
    let relay = Relay::start(&bench, "a").await;
    let lanes: BTreeSet<_> = relay.read().await.into_iter().map(|message| message.lane).collect();
    assert_eq!(lanes.len(), usize::from(LANES));
}

pub(crate) async fn publishers_at_the_same_time_lose_nothing(bench: Bench) {
    let relay = Relay::start(&bench, "a").await;
    let publish = |n: usize| {
        let bench = bench.clone();
        async move {
            let mut calls = Vec::new();
            for _ in 0..10 {
                let key = format!("key {n}");
                let message = NewMessage { key: Some(key), ..new_message("t", None) };
                calls.push(bench.publish(vec![message; 7]).await);
            }
            calls
        }
    };
    let published: Vec<Vec<Vec<MessageId>>> = at_once(4, publish).await;
    let read = ids(&relay.read().await);
    assert_eq!(read.len(), published.concat().concat().len());
    assert!(read.is_sorted_by(|one, next| one < next) || !bench.is_log());
    for calls in &published {
        let of_one = calls.concat();
        let in_order: Vec<_> = read.iter().filter(|id| of_one.contains(id)).cloned().collect();
        assert_eq!(in_order, of_one);
    }
}
