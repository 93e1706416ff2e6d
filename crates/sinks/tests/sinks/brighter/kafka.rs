use super::{headers, item};
use crate::{
    kafka::{TOPIC, cluster, sink, stored},
    support::done,
};
use tidegate_core::{
    Sink,
    sink::{Delivery, Item},
};

#[tokio::test]
async fn kafka_carries_what_consumers_read() {
    let cluster = cluster(1);
    let sink = sink(&cluster, "envelope = 'brighter'");
    let own = headers();
    let items = [item("m-1", TOPIC, &own), Item { key: None, ..item("m-2", TOPIC, &own) }];
    let answer = sink.deliver(Delivery { connection: 0, items: &items }).await;
    assert_eq!(answer.outcome, done(2));
    let mut found = stored(&cluster);
    found.sort_by(|one, other| other.0.cmp(&one.0));
    assert_eq!(found[0].0.as_deref(), Some("k"));
    assert_eq!(found[1].0.as_deref(), Some(""), "without a partition key it is empty");
    assert_eq!(found[0].1, r#"{"n":1}"#);
    let expected = [
        "MessageType=MT_COMMAND",
        "Topic=orders",
        "MessageId=m-1",
        "TimeStamp=01/02/2026 03:04:05",
        "x-delay=0",
        "HandledCount=0",
        "ce_id=m-1",
        "ce_specversion=1.0",
        "ce_type=shop.order.placed",
        "ce_source=http://goparamore.io",
        "ce_time=2026-01-02T03:04:05.678Z",
        "ContentType=application/json; charset=utf-8",
        "content-type=application/json; charset=utf-8",
        "CorrelationId=c-1",
        "PartitionKey=k",
        "ReplyTo=replies",
        "ce_tracestate=a=b",
        "SessionId=s-1",
        "tries=3",
        "price=1.50",
        "urgent=True",
        r#"tags=["a",1]"#,
        r#"at={"x":1}"#,
    ];
    assert_eq!(found[0].2, expected);
}
