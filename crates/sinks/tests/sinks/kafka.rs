//! Kafka: librdkafka's own mock of a cluster, over real sockets on loopback.

use crate::support::{done, env};
use rdkafka::{
    ClientConfig, Message, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    message::Headers as _,
    mocking::MockCluster,
    producer::{DefaultProducerContext, FutureProducer, FutureRecord},
    types::{RDKafkaApiKey::Produce, RDKafkaRespErr as Error},
};
use std::time::{Duration, Instant};
use tidegate_core::{
    Headers, Sink,
    sink::{Answer, Delivery, Item, Outcome, Verdict},
};
use tidegate_sinks::kafka::Kafka;

pub type Cluster = MockCluster<'static, DefaultProducerContext>;

pub const TOPIC: &str = "orders";

/// A cluster with one broker, and the topic with as many partitions.
pub fn cluster(partitions: i32) -> Cluster {
    let cluster = MockCluster::new(1).unwrap();
    assert!(cluster.bootstrap_servers().starts_with("127.0.0.1:"), "bound to loopback only");
    cluster.create_topic(TOPIC, partitions, 1).unwrap();
    cluster
}

pub fn sink(cluster: &Cluster, rest: &str) -> Kafka {
    try_sink(&format!("brokers = ['{}']\n{rest}", cluster.bootstrap_servers())).unwrap()
}

fn try_sink(config: &str) -> Result<Kafka, String> {
    let config = toml::from_str(config).map_err(|it| it.to_string())?;
    Kafka::new(&config, &env).map_err(|error| error.to_string())
}

/// Sends payloads with their keys.
async fn deliver(sink: &Kafka, messages: &[(Option<&str>, &str)]) -> Answer {
    deliver_to(sink, TOPIC, messages).await
}

async fn deliver_to(sink: &Kafka, topic: &str, messages: &[(Option<&str>, &str)]) -> Answer {
    let headers = Headers::from_iter([("traceparent", "00-a-b-01")]);
    let ids: Vec<String> = (0..messages.len()).map(|at| format!("m-{at}")).collect();
    let item = |at: usize| {
        let (key, payload) = messages[at];
        Item { topic, key, headers: &headers, ..Item::record(&ids[at], payload) }
    };
    let items: Vec<_> = (0..messages.len()).map(item).collect();
    sink.deliver(Delivery { connection: 0, items: &items }).await
}

/// Sends until all is done: a producer takes a while to find its broker, and more if much is going
/// on beside it.
async fn deliver_in_the_end(sink: &Kafka, messages: &[(Option<&str>, &str)]) {
    let began = Instant::now();
    while deliver(sink, messages).await.outcome != done(messages.len()) {
        assert!(began.elapsed() < Duration::from_secs(30));
    }
}

/// The payloads in a topic with one partition, in their order, with key and headers.
pub fn stored(cluster: &Cluster) -> Vec<(Option<String>, String, Vec<String>)> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", cluster.bootstrap_servers())
        .set("group.id", "test")
        .set("enable.partition.eof", "true")
        .create()
        .unwrap();
    let mut places = TopicPartitionList::new();
    places.add_partition_offset(TOPIC, 0, rdkafka::Offset::Beginning).unwrap();
    consumer.assign(&places).unwrap();
    let (mut found, began) = (Vec::new(), Instant::now());
    loop {
        assert!(began.elapsed() < Duration::from_secs(20), "{found:?}");
        match consumer.poll(Duration::from_millis(100)) {
            Some(Ok(message)) => {
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                let headers = message.headers().unwrap().iter();
                let headers = headers.map(|it| format!("{}={}", it.key, text(it.value.unwrap())));
                let (key, payload) = (message.key().map(text), text(message.payload().unwrap()));
                found.push((key, payload, headers.collect()));
            }
            // The end of the partition.
            Some(Err(rdkafka::error::KafkaError::PartitionEOF(_))) => break,
            Some(Err(error)) => panic!("{error}"),
            None => {}
        }
    }
    found
}

#[tokio::test]
async fn messages_arrive_whole_and_in_order() {
    let cluster = cluster(1);
    let sink = sink(&cluster, "");
    assert_eq!(sink.check().await.unwrap(), [None]);
    let messages =
        [(Some("a"), "a1"), (Some("b"), "b1"), (Some("a"), "a2"), (None, "x"), (Some("a"), "a3")];
    assert_eq!(deliver(&sink, &messages).await.outcome, done(5));
    let found = stored(&cluster);
    let of = |key: Option<&str>| -> Vec<_> {
        found.iter().filter(|it| it.0.as_deref() == key).map(|it| it.1.as_str()).collect()
    };
    assert_eq!(
        (of(Some("a")), of(Some("b")), of(None)),
        (vec!["a1", "a2", "a3"], vec!["b1"], vec!["x"])
    );
    let first = found.iter().find(|it| it.1 == "a1").unwrap();
    assert_eq!(first.2, ["traceparent=00-a-b-01", "id=m-0"]);
}

/// Why keys go in rounds: the order of an idempotent producer does not stop at a failure.
#[tokio::test]
async fn an_idempotent_producer_goes_on_past_a_message_that_failed() {
    let cluster = cluster(1);
    let producer: FutureProducer = ClientConfig::new()
        .set("bootstrap.servers", cluster.bootstrap_servers())
        .set("enable.idempotence", "true")
        .set("acks", "all")
        .set("batch.num.messages", "1")
        .create()
        .unwrap();
    cluster.request_errors(Produce, &[Error::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED]);
    let send = |payload| {
        producer.send_result(FutureRecord::to(TOPIC).key("a").payload(payload)).ok().unwrap()
    };
    let (first, second) = (send("a1"), send("a2"));
    assert!(first.await.unwrap().is_err());
    assert!(second.await.unwrap().is_ok(), "the second of the key arrives without the first");
}

#[tokio::test]
async fn nothing_arrives_after_one_of_its_key_that_failed() {
    let cluster = cluster(1);
    let sink = sink(&cluster, "settings = { 'batch.num.messages' = 1 }");
    cluster.request_errors(Produce, &[Error::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED]);
    let messages = [(Some("a"), "a1"), (Some("a"), "a2"), (Some("b"), "b1"), (Some("a"), "a3")];
    let Outcome::Answered(verdicts) = deliver(&sink, &messages).await.outcome else { panic!() };
    let Verdict::Retry(reason) = &verdicts[0] else { panic!("{verdicts:?}") };
    assert!(reason.starts_with("topic `orders` may not be written"), "{reason}");
    assert_eq!(verdicts[1..], [Verdict::Behind, Verdict::Done, Verdict::Behind]);
    let found = stored(&cluster);
    assert_eq!((found.len(), found[0].1.as_str()), (1, "b1"));
    // And the next call makes up for it.
    assert_eq!(deliver(&sink, &messages).await.outcome, done(4));
}

#[tokio::test]
async fn a_message_that_is_too_large_is_dead_alone() {
    let cluster = cluster(1);
    let sink = sink(&cluster, "");
    let large = "x".repeat(2_000_000);
    let messages = [(Some("a"), large.as_str()), (Some("a"), "a2"), (Some("b"), "b1")];
    let Outcome::Answered(verdicts) = deliver(&sink, &messages).await.outcome else { panic!() };
    let Verdict::Dead(reason) = &verdicts[0] else { panic!("{verdicts:?}") };
    assert!(reason.contains("MessageSizeTooLarge") && reason.len() < 300, "{reason}");
    assert_eq!(verdicts[1..], [Verdict::Behind, Verdict::Done]);
}

#[tokio::test]
async fn a_missing_topic_is_named() {
    let cluster = cluster(1);
    let unknown = Error::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    cluster.topic_error("nowhere", unknown).unwrap();
    let sink = sink(&cluster, "timeout = 8");
    let outcome = deliver_to(&sink, "nowhere", &[(Some("a"), "a1")]).await.outcome;
    let reason = "topic `nowhere` does not exist: create it".to_owned();
    assert_eq!(outcome, Outcome::Answered(vec![Verdict::Retry(reason)]));
    let outcome = deliver_to(&sink, "no/topic", &[(Some("a"), "a1")]).await.outcome;
    let Outcome::Answered(verdicts) = outcome else { panic!("{outcome:?}") };
    assert!(matches!(&verdicts[0], Verdict::Dead(reason) if reason.contains("no topic of Kafka")));
}

#[tokio::test]
async fn what_passes_by_itself_is_not_even_seen() {
    let cluster = cluster(1);
    let sink = sink(&cluster, "settings = { 'retry.backoff.ms' = 10 }");
    cluster.request_errors(
        Produce,
        &[
            Error::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
            Error::RD_KAFKA_RESP_ERR__TRANSPORT,
            Error::RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
        ],
    );
    assert_eq!(deliver(&sink, &[(Some("a"), "a1"), (Some("a"), "a2")]).await.outcome, done(2));
    let payloads: Vec<_> = stored(&cluster).into_iter().map(|it| it.1).collect();
    assert_eq!(payloads, ["a1", "a2"], "in order, and none twice");
}

#[tokio::test]
async fn brokers_that_are_not_there_are_waited_for() {
    let cluster = cluster(1);
    cluster.broker_down(-1).unwrap();
    let sink = sink(&cluster, "timeout = 4\nsettings = { 'reconnect.backoff.max.ms' = 100 }");
    let messages = [(Some("a"), "a1"), (Some("a"), "a2")];
    let outcome = deliver(&sink, &messages).await.outcome;
    assert!(matches!(outcome, Outcome::Unavailable(_)), "{outcome:?}");
    let error = sink.check().await.unwrap_err().to_string();
    assert!(error.starts_with("no broker answers: "), "{error}");
    cluster.broker_up(-1).unwrap();
    deliver_in_the_end(&sink, &messages).await;
    let mut payloads: Vec<_> = stored(&cluster).into_iter().map(|it| it.1).collect();
    payloads.dedup();
    assert_eq!(payloads, ["a1", "a2"]);
}

#[tokio::test]
async fn brokers_that_are_too_slow_time_out() {
    let cluster = cluster(1);
    let sink = sink(&cluster, "timeout = 2");
    deliver_in_the_end(&sink, &[(None, "first")]).await;
    cluster.broker_round_trip_time(-1, Duration::from_secs(10)).unwrap();
    let began = Instant::now();
    assert_eq!(deliver(&sink, &[(Some("a"), "a1")]).await.outcome, Outcome::TimedOut);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_full_queue_is_a_throttle() {
    let cluster = cluster(1);
    let settings = "settings = { 'queue.buffering.max.messages' = 1, 'linger.ms' = 500 }";
    let sink = sink(&cluster, settings);
    let Outcome::Answered(verdicts) = deliver(&sink, &[(None, "1"), (None, "2")]).await.outcome
    else {
        panic!()
    };
    assert_eq!(verdicts, [Verdict::Done, Verdict::Throttled { retry_after: None }]);
}

#[tokio::test]
async fn a_producer_that_failed_for_good_is_replaced() {
    let cluster = cluster(1);
    let sink = sink(&cluster, "");
    assert_eq!(deliver(&sink, &[(Some("a"), "a1")]).await.outcome, done(1));
    cluster.request_errors(Produce, &[Error::RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER; 3]);
    let outcome = deliver(&sink, &[(Some("a"), "a2")]).await.outcome;
    let Outcome::Unavailable(reason) = outcome else { panic!("{outcome:?}") };
    assert!(reason.starts_with("the producer failed and starts anew"), "{reason}");
    cluster.clear_request_errors(Produce);
    assert_eq!(deliver(&sink, &[(Some("a"), "a2")]).await.outcome, done(1));
}

#[test]
fn configs_that_cannot_be_are_refused_by_their_key() {
    let refused =
        |rest: &str| try_sink(&format!("brokers = ['localhost:9092']\n{rest}")).unwrap_err();
    let cases = [
        ("topic = '{name}'", "`topic` has `{name}`"),
        ("settings = { acks = 1 }", "`settings.acks` is always `all`"),
        ("settings = { 'no.such' = 1 }", "`settings.no.such` is not known"),
        (
            "settings = { 'linger.ms' = 'soon' }",
            "`settings.linger.ms` is not known, or has a value",
        ),
        ("settings = { 'sasl.password' = 'x' }", "`settings.sasl.password` holds a secret"),
        ("settings = { 'security.protocol' = 'ssl' }", "`settings.security.protocol` needs TLS"),
        ("max_group = 0", "`max_group` is 0: use 1 to 10000"),
        ("retries = 1", "unknown field `retries`"),
    ];
    for (rest, expected) in cases {
        let error = refused(rest);
        assert!(error.starts_with(expected) || error.contains(expected), "{error}");
    }
    let sink = try_sink("brokers = ['localhost:1']").unwrap();
    let capabilities = sink.capabilities();
    assert_eq!((capabilities.name, capabilities.max_group), ("kafka", 500));
    assert!(capabilities.mixes_topics);
}
