//! Messages with Brighter's envelope, as they stand in real servers.

#[cfg(feature = "amqp")]
mod amqp;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "aws")]
mod sns;
#[cfg(feature = "aws")]
mod sqs;

use std::time::{Duration, UNIX_EPOCH};
use tidegate_core::{Headers, sink::Item};

/// What a row of Brighter's outbox says beside its body.
fn headers() -> Headers {
    let mut headers = Headers::from_iter([
        ("message-type", "MT_COMMAND"),
        ("content-type", "application/json; charset=utf-8"),
        ("correlation-id", "c-1"),
        ("reply-to", "replies"),
        ("ce-type", "shop.order.placed"),
        ("tracestate", "a=b"),
    ]);
    let bag = r#"{"SessionId":"s-1","tries":3,"price":1.50,"urgent":true,"tags":["a",1],"at":{"x":1},
        "paramore.brighter.ProducerTopic":"local"}"#;
    headers.set_further(bag, &[]).unwrap();
    headers
}

fn item<'a>(id: &'a str, topic: &'a str, headers: &'a Headers) -> Item<'a> {
    Item {
        topic,
        key: Some("k"),
        headers,
        published_at: Some(UNIX_EPOCH + Duration::from_millis(1_767_323_045_678)),
        ..Item::record(id, r#"{"n":1}"#)
    }
}
