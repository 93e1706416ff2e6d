use super::{headers, item};
use crate::brokers::{declared, retry, secrets, server, unique, verdicts};
use redis::{AsyncCommands, Client, aio::MultiplexedConnection};
use tidegate_core::sink::{Item, Verdict};
use tidegate_sinks::redis::{Config, Redis};

async fn looker() -> MultiplexedConnection {
    let client = Client::open(format!("redis://{}", server("TIDEGATE_TEST_REDIS"))).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

fn sink(rest: &str) -> Redis {
    let url = format!("redis://{}", server("TIDEGATE_TEST_REDIS"));
    let config: Config = declared(&format!("url = '{url}'\nenvelope = 'brighter'\n{rest}"));
    Redis::new(&config, &secrets).unwrap()
}

#[tokio::test]
async fn each_consumer_finds_the_frame_by_its_number() {
    let (mut redis, topic, own) = (looker().await, unique("orders"), headers());
    let queues = [unique("queue"), unique("queue")];
    let _: () = redis.sadd(format!("{topic}.queues"), &queues[..]).await.unwrap();
    let items = [item("m-1", &topic, &own), item("m-2", &topic, &own), item("m-3", &topic, &own)];
    let sink = sink("ttl = 3600");
    assert_eq!(verdicts(&sink, &items).await, vec![Verdict::Done; 3]);
    let next: i64 = redis.get(format!("{topic}.nextid")).await.unwrap();
    assert_eq!(next, 3);
    for queue in &queues {
        let numbers: Vec<String> = redis.lrange(queue, 0, -1).await.unwrap();
        assert_eq!(numbers, ["1", "2", "3"], "messages of a key stay in order");
    }
    let frame: String = redis.get(format!("{topic}.1")).await.unwrap();
    let bag = r#"{\"SessionId\":\"s-1\",\"tries\":3,\"price\":1.50,\"urgent\":true,\"tags\":[\"a\",1],\"at\":{\"x\":1}}"#;
    let header = [
        r#"{"Id":"m-1","TimeStamp":"2026-01-02T03:04:05.678Z","#,
        &format!(r#""Topic":"{topic}","MessageType":"MT_COMMAND","HandledCount":"0","#),
        &format!(r#""DelayedMilliseconds":"0","Bag":"{bag}","ReplyTo":"replies","#),
        r#""ContentType":"application/json; charset=utf-8","CorrelationId":"c-1","#,
        r#""cloudevents:source":"http://goparamore.io","cloudevents:type":"shop.order.placed","#,
        r#""cloudevents:baggage":"","cloudevents:tracestate":"a=b"}"#,
    ];
    let expected = format!("<HEADER \n{}\n HEADER/>\n<BODY\n{{\"n\":1}}\nBODY/>", header.concat());
    assert_eq!(frame, expected);
    let ttl: i64 = redis.ttl(format!("{topic}.1")).await.unwrap();
    assert!((1..=3600).contains(&ttl), "{ttl}");
}

#[tokio::test]
async fn a_message_that_nobody_would_get_is_not_done() {
    let (mut redis, topic, own) = (looker().await, unique("orders"), headers());
    let found = verdicts(&sink(""), &[item("m-1", &topic, &own)]).await;
    assert!(retry(&found[0]).contains(&format!("the set `{topic}.queues` is empty")), "{found:?}");
    let stored: bool = redis.exists(format!("{topic}.1")).await.unwrap();
    assert!(!stored);
}

#[tokio::test]
async fn a_body_of_several_lines_is_dead_and_holds_its_key() {
    let (mut redis, topic, own) = (looker().await, unique("orders"), headers());
    let queue = unique("queue");
    let _: () = redis.sadd(format!("{topic}.queues"), &queue).await.unwrap();
    let items = [
        Item { payload: b"{\n}", ..item("m-1", &topic, &own) },
        item("m-2", &topic, &own),
        Item { key: Some("other"), ..item("m-3", &topic, &own) },
    ];
    let found = verdicts(&sink(""), &items).await;
    assert!(matches!(&found[0], Verdict::Dead(why) if why.contains("several lines")), "{found:?}");
    assert_eq!(found[1..], [Verdict::Behind, Verdict::Done]);
    let ttl: i64 = redis.ttl(format!("{topic}.1")).await.unwrap();
    assert_eq!(ttl, -1, "without a time to live it stays");
}

#[tokio::test]
async fn a_name_that_is_taken_by_something_else_is_told() {
    let (mut redis, topic, own) = (looker().await, unique("orders"), headers());
    let _: () = redis.set(format!("{topic}.queues"), "no set").await.unwrap();
    let found = verdicts(&sink(""), &[item("m-1", &topic, &own)]).await;
    assert!(retry(&found[0]).contains("is no list or set as Brighter has them"), "{found:?}");
}
