//! Queues of a real RabbitMQ.

use crate::{
    brokers::{
        comes_and_goes, declared, item, refusal, retry, secrets, send, server, unique, verdicts,
    },
    gate::Gate,
};
use lapin::{
    Channel, Connection, ConnectionProperties, ExchangeKind,
    message::BasicGetMessage,
    options::{
        BasicGetOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions,
        QueueDeleteOptions,
    },
    types::{AMQPValue, FieldTable, LongString},
};
use std::{
    io::{self, Write},
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, UNIX_EPOCH},
};
use tempfile::NamedTempFile;
use tidegate_core::{
    Headers,
    sink::{Item, Outcome, Sink, Verdict},
};
use tidegate_sinks::amqp::{Amqp, Config};

fn at(address: SocketAddr, rest: &str) -> Amqp {
    let config: Config = declared(&format!("url = 'amqp://{address}'\n{rest}"));
    Amqp::new(&config, &secrets).unwrap()
}

fn sink(rest: &str) -> Amqp {
    at(rabbitmq(), rest)
}

fn rabbitmq() -> SocketAddr {
    server("TIDEGATE_TEST_RABBITMQ")
}

/// A channel that looks into the server. The connection must be kept.
async fn looker() -> (Connection, Channel) {
    let url = format!("amqp://{}", rabbitmq());
    let connection = Connection::connect(&url, ConnectionProperties::default()).await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    (connection, channel)
}

async fn queue(channel: &Channel, arguments: &[(&str, AMQPValue)]) -> String {
    let name = unique("orders");
    let mut table = FieldTable::default();
    for (argument, value) in arguments {
        table.insert((*argument).into(), value.clone());
    }
    let options = QueueDeclareOptions { durable: true, ..Default::default() };
    channel.queue_declare(name.as_str().into(), options, table).await.unwrap();
    name
}

async fn get(channel: &Channel, queue: &str) -> Option<BasicGetMessage> {
    channel.basic_get(queue.into(), BasicGetOptions { no_ack: true }).await.unwrap()
}

async fn ids(channel: &Channel, queue: &str) -> Vec<String> {
    let mut ids = Vec::new();
    while let Some(message) = get(channel, queue).await {
        ids.push(message.properties.message_id().as_ref().unwrap().to_string());
    }
    ids
}

#[tokio::test]
async fn a_message_has_all_that_its_item_has() {
    let (_connection, channel) = looker().await;
    let topic = queue(&channel, &[]).await;
    let own = Headers::from_iter([("content-type", "text/plain"), ("ce-type", "created")]);
    let full = Item {
        headers: &own,
        payload: b"\x00\xff",
        published_at: Some(UNIX_EPOCH + Duration::from_millis(1_700_000_000_123)),
        ..item("m1", &topic, Some("k"))
    };
    let sink = sink("");
    sink.check().await.unwrap();
    assert_eq!(verdicts(&sink, &[full]).await, [Verdict::Done]);
    let message = get(&channel, &topic).await.unwrap();
    assert_eq!(message.data, b"\x00\xff");
    let properties = &message.properties;
    assert_eq!(properties.message_id().as_ref().unwrap().as_str(), "m1");
    assert_eq!(properties.content_type().as_ref().unwrap().as_str(), "text/plain");
    assert_eq!(*properties.delivery_mode(), Some(2));
    assert_eq!(*properties.timestamp(), Some(1_700_000_000));
    let headers = properties.headers().as_ref().unwrap().inner();
    let expected = [
        ("ce-type", "created"),
        ("content-type", "text/plain"),
        ("tidegate-key", "k"),
        ("tidegate-topic", topic.as_str()),
    ];
    for (name, value) in expected {
        let value = AMQPValue::LongString(LongString::from(value));
        assert_eq!(headers.get(name), Some(&value), "{name}");
    }
    assert!(get(&channel, &topic).await.is_none());
}

#[tokio::test]
async fn items_of_a_key_keep_their_order_and_stop_at_one_that_fails() {
    let (_connection, channel) = looker().await;
    let (topic, nowhere) = (queue(&channel, &[]).await, unique("nowhere"));
    let items = [
        item("1", &topic, Some("a")),
        item("2", &nowhere, Some("a")),
        item("3", &topic, Some("a")),
        item("4", &topic, Some("b")),
        item("5", &topic, Some("b")),
    ];
    let verdicts = verdicts(&sink(""), &items).await;
    assert_eq!(verdicts[0], Verdict::Done);
    let expected = format!("there is no queue `{nowhere}`: create it, or use `declare`");
    assert_eq!(retry(&verdicts[1]), expected);
    assert_eq!(verdicts[2..], [Verdict::Behind, Verdict::Done, Verdict::Done]);
    let mut found = ids(&channel, &topic).await;
    assert_eq!(found.remove(0), "1");
    assert_eq!(found, ["4", "5"]);
}

/// RabbitMQ confirms many at once, and the client then does not know which of them came back.
#[tokio::test]
async fn among_many_exactly_those_without_a_queue_come_back() {
    let (_connection, channel) = looker().await;
    let (topic, nowhere) = (queue(&channel, &[]).await, unique("nowhere"));
    let sink = sink("");
    let ids: Vec<String> = (0..1000).map(|id| id.to_string()).collect();
    let lost = |at: usize| at % 7 == 3;
    let topic_of = |at: usize| if lost(at) { nowhere.as_str() } else { topic.as_str() };
    let items = ids.iter().enumerate().map(|(at, id)| item(id, topic_of(at), None));
    let items: Vec<_> = items.collect();
    // Twice, so that the second time uses the channel of the first.
    for _ in 0..2 {
        for (at, verdict) in verdicts(&sink, &items).await.iter().enumerate() {
            assert_eq!(matches!(verdict, Verdict::Retry(_)), lost(at), "{at} {verdict:?}");
        }
    }
    let found = ids_of(&channel, &topic).await;
    assert_eq!(found, 2 * (0..1000).filter(|at| !lost(*at)).count());
}

async fn ids_of(channel: &Channel, queue: &str) -> usize {
    ids(channel, queue).await.len()
}

#[tokio::test]
async fn quorum_queues_are_declared_when_they_are_first_used() {
    let (_connection, channel) = looker().await;
    let sink = sink("declare = 'quorum'");
    let (topic, classic) = (unique("orders"), queue(&channel, &[]).await);
    let one = [item("1", &topic, Some("a")), item("2", &classic, Some("b"))];
    let first = verdicts(&sink, &one).await;
    assert_eq!(first[0], Verdict::Done);
    let expected = format!("the queue `{classic}` is there, but is no durable quorum queue");
    assert!(retry(&first[1]).starts_with(&expected), "{first:?}");
    assert_eq!(ids(&channel, &topic).await, ["1"]);

    // One that is deleted is declared again, once that was noticed.
    let delete = channel.queue_delete(topic.as_str().into(), QueueDeleteOptions::default());
    delete.await.unwrap();
    let again = [item("3", &topic, Some("a"))];
    retry(&verdicts(&sink, &again).await[0]);
    assert_eq!(verdicts(&sink, &again).await, [Verdict::Done]);
    assert_eq!(ids(&channel, &topic).await, ["3"]);
}

#[tokio::test]
async fn an_exchange_takes_what_a_queue_is_bound_for() {
    let (_connection, channel) = looker().await;
    let (exchange, topic) = (unique("exchange"), queue(&channel, &[]).await);
    let name = || exchange.as_str().into();
    let (options, none) = (ExchangeDeclareOptions::default(), FieldTable::default());
    channel.exchange_declare(name(), ExchangeKind::Topic, options, none.clone()).await.unwrap();
    let bind = QueueBindOptions::default();
    channel.queue_bind(topic.as_str().into(), name(), "eu.*".into(), bind, none).await.unwrap();
    let sink = sink(&format!("exchange = '{exchange}'\nrouting_key = '{{topic}}.{{key}}'"));
    sink.check().await.unwrap();
    let items = [item("1", "eu", Some("a")), item("2", "us", Some("a")), item("3", "eu", None)];
    let verdicts = verdicts(&sink, &items).await;
    assert_eq!(verdicts[0], Verdict::Done);
    let expected = format!(
        "no queue is bound to the exchange `{exchange}` for the routing key `us.a`: bind one"
    );
    assert_eq!(retry(&verdicts[1]), expected);
    assert!(matches!(&verdicts[2], Verdict::Dead(it) if it.contains("no key")), "{verdicts:?}");
    assert_eq!(ids(&channel, &topic).await, ["1"]);
}

#[tokio::test]
async fn an_exchange_that_is_not_there_breaks_the_sink() {
    let name = unique("nowhere");
    let sink = sink(&format!("exchange = '{name}'"));
    for _ in 0..2 {
        let outcome = send(&sink, &[item("1", "t", None), item("2", "t", None)]).await;
        let Outcome::Broken(reason) = outcome else { panic!("{outcome:?}") };
        assert!(reason.starts_with(&format!("there is no exchange `{name}`: create it")));
    }
    let error = sink.check().await.unwrap_err().to_string();
    assert_eq!(error, format!("there is no exchange `{name}`: create it"));
}

#[tokio::test]
async fn a_server_may_come_and_go() {
    let (_connection, channel) = looker().await;
    let topic = queue(&channel, &[]).await;
    comes_and_goes(rabbitmq(), &topic, at).await;
}

#[tokio::test]
async fn what_is_larger_than_rabbitmq_takes_is_dead_alone() {
    let (_connection, channel) = looker().await;
    let topic = queue(&channel, &[]).await;
    let large = vec![b'x'; (1 << 20) + 1];
    let items = [
        item("1", &topic, Some("a")),
        Item { payload: &large, ..item("2", &topic, Some("b")) },
        Item { payload: &large[1..], ..item("3", &topic, Some("c")) },
    ];
    let sink = sink("");
    let first = verdicts(&sink, &items).await;
    let Verdict::Dead(reason) = &first[1] else { panic!("{first:?}") };
    assert!(reason.contains("larger than"), "{reason}");
    for verdict in [&first[0], &first[2]] {
        let blameless = matches!(verdict, Verdict::Done | Verdict::Unavailable(_));
        assert!(blameless, "{verdict:?}");
    }
    let rest = [items[0], items[2]];
    assert_eq!(verdicts(&sink, &rest).await, [Verdict::Done, Verdict::Done]);
}

#[tokio::test]
async fn a_queue_that_takes_no_more_is_tried_again() {
    let (_connection, channel) = looker().await;
    let reject = AMQPValue::LongString(LongString::from("reject-publish"));
    let limit = [("x-max-length", AMQPValue::LongInt(1)), ("x-overflow", reject)];
    let topic = queue(&channel, &limit).await;
    let items = [item("1", &topic, Some("a")), item("2", &topic, Some("a"))];
    let sink = sink("");
    // The limit holds from when RabbitMQ has noticed.
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    loop {
        let refused = verdicts(&sink, &items).await.into_iter().find(|it| *it != Verdict::Done);
        if let Some(refused) = refused {
            assert!(retry(&refused).contains("nack"), "{refused:?}");
            return;
        }
        assert!(std::time::Instant::now() < deadline, "nothing is ever refused");
    }
}

#[tokio::test]
async fn a_user_who_is_refused_breaks_the_sink_and_the_password_does_not_show() {
    let sink = sink("user = 'guest'\npassword = { env = 'SECRET_WRONG' }");
    let Outcome::Broken(reason) = send(&sink, &[item("1", "t", None)]).await else { panic!() };
    let expected = format!("{} refuses the credentials", rabbitmq());
    assert!(reason.starts_with(&expected), "{reason}");
    let error = sink.check().await.unwrap_err().to_string();
    assert!(error.starts_with(&expected), "{error}");
    for text in [reason, error, format!("{sink:?}")] {
        assert!(!text.contains("value of"), "{text}");
    }
}

#[tokio::test]
async fn a_virtual_host_that_is_not_there_breaks_the_sink() {
    let config: Config = declared(&format!("url = 'amqp://{}/nowhere'", rabbitmq()));
    let error = Amqp::new(&config, &secrets).unwrap().check().await.unwrap_err().to_string();
    assert!(error.contains("vhost nowhere not found"), "{error}");
}

#[tokio::test]
async fn messages_go_by_tls_to_whom_is_trusted() {
    let (_connection, channel) = looker().await;
    let topic = queue(&channel, &[]).await;
    let (gate, certificate) = Gate::secured(rabbitmq());
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(certificate.as_bytes()).unwrap();
    let url = format!("url = 'amqps://{}'", gate.address());
    let trusting: Config = declared(&format!("{url}\nca_file = '{}'", file.path().display()));
    let sink = Amqp::new(&trusting, &secrets).unwrap();
    assert_eq!(verdicts(&sink, &[item("1", &topic, None)]).await, [Verdict::Done]);
    let sink = Amqp::new(&declared(&url), &secrets).unwrap();
    let Outcome::Broken(reason) = send(&sink, &[item("1", &topic, None)]).await else { panic!() };
    assert!(reason.contains("certificate that does not verify"), "{reason}");
}

/// What was logged, by anybody in this process.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(text)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The client would log what comes back, with its payload, in a thread of its own.
#[tokio::test]
async fn a_message_that_comes_back_is_not_logged() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::WARN)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let nowhere = unique("nowhere");
    let verdicts = verdicts(&sink(""), &[item("1", &nowhere, None)]).await;
    retry(&verdicts[0]);
    tracing::warn!("this is logged");
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("this is logged"), "{log}");
    assert!(!log.contains(&nowhere), "{log}");
}

#[test]
fn configs_that_cannot_be_are_refused_by_their_key() {
    let refused = |config: &str| match toml::from_str::<Config>(config) {
        Ok(config) => refusal(Amqp::new(&config, &secrets)),
        Err(error) => error.to_string(),
    };
    let with = |rest: &str| refused(&format!("url = 'amqp://example.com'\n{rest}"));
    assert!(with("routing_key = '{topics}'").contains("`routing_key` has `{topics}`"));
    assert!(with("declare = 'classic'").contains("unknown variant `classic`"));
    assert!(with("declare = 'quorum'\nexchange = 'x'").contains("`declare` declares queues"));
    let clear = with("user = 'a'\npassword = { env = 'SECRET_A' }");
    assert!(clear.contains("`url` sends secrets in the clear: use amqps://"), "{clear}");
    assert!(with("password = 'word'\nuser = 'a'").contains("`password` holds a secret itself"));
    assert!(with("queues = 'quorum'").contains("unknown field `queues`"));
    let secret = refused("url = 'amqp://me:hunter2@example.com'");
    assert!(secret.contains("use `user` and `password`"), "{secret}");
    assert!(!secret.contains("hunter2"), "{secret}");
    assert!(refused("url = 'amqp://127.0.0.1'").contains("is a loopback address"));
    let capabilities = at("127.0.0.1:1".parse().unwrap(), "").capabilities();
    assert_eq!((capabilities.name, capabilities.max_group), ("amqp", 1000));
}
