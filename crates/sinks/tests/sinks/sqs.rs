//! Queues of a server that plays SQS.

use crate::{
    brokers::{declared, item, refusal, secrets, send, until_done, verdicts},
    gate::Gate,
    moto::{Arrived, REGION, arrived, moto, queue},
};
use std::net::SocketAddr;
use tidegate_core::{
    Headers,
    sink::{Item, Outcome, Sink, Verdict},
};
use tidegate_sinks::sqs::{Config, Sqs};

/// What is the same in most configs here.
pub const KEYS: &str =
    "access_key_id = 'tests'\nsecret_access_key = { env = 'SECRET_AWS' }\nregion = 'eu-west-1'";

fn at(address: SocketAddr, queue: &str, rest: &str) -> Sqs {
    let config = format!("endpoint = 'http://{address}'\nqueue = '{queue}'\n{KEYS}\n{rest}");
    Sqs::new(&declared::<Config>(&config), &secrets).unwrap()
}

fn sink(queue: &str) -> Sqs {
    at(moto(), queue, "")
}

fn attribute<'a>(arrived: &'a Arrived, name: &str) -> Option<&'a str> {
    arrived.attributes.get(name).map(String::as_str)
}

#[tokio::test]
async fn a_message_has_all_that_its_item_has() {
    let queue = queue("all").await;
    let own = Headers::from_iter([("content-type", "text/plain"), ("ce-type", "created")]);
    let full =
        Item {
            headers: &own, payload: "tide é\n".as_bytes(), ..item("m1", "orders", Some("k k"))
        };
    let bytes = Item { payload: b"\x00\xff", ..item("m2", "orders", None) };
    let sink = sink(&queue);
    sink.check().await.unwrap();
    assert_eq!(verdicts(&sink, &[full, bytes]).await, [Verdict::Done, Verdict::Done]);
    let mut found = arrived(&queue).await;
    found.sort_by_key(|it| it.attributes["id"].clone());
    let [full, bytes] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(full.body, "tide é\n");
    let expected = [
        ("id", "m1"),
        ("tidegate-topic", "orders"),
        ("tidegate-key", "k k"),
        ("content-type", "text/plain"),
        ("ce-type", "created"),
    ];
    for (name, value) in expected {
        assert_eq!(attribute(full, name), Some(value), "{name}");
    }
    assert_eq!((full.attributes.len(), full.group.clone()), (5, None));
    assert_eq!(
        (bytes.body.as_str(), attribute(bytes, "tidegate-encoding")),
        ("AP8=", Some("base64"))
    );
}

#[tokio::test]
async fn more_headers_than_attributes_arrive_in_one() {
    let queue = queue("many").await;
    let names: Vec<String> = (0..12).map(|n| format!("h{n:02}")).collect();
    let own = Headers::from_iter(names.iter().map(|name| (name.as_str(), "v")));
    let item = Item { headers: &own, ..item("m1", "t", Some("k")) };
    assert_eq!(verdicts(&sink(&queue), &[item]).await, [Verdict::Done]);
    let [found] = <[Arrived; 1]>::try_from(arrived(&queue).await).unwrap();
    assert_eq!(found.attributes.len(), 10);
    let rest: Headers =
        serde_json::from_str(attribute(&found, "tidegate-headers").unwrap()).unwrap();
    assert_eq!((rest.iter().count(), rest.get("h11")), (6, Some("v")));
}

#[tokio::test]
async fn a_fifo_queue_keeps_the_order_of_keys_and_takes_a_message_once() {
    let queue = queue("order.fifo").await;
    let sink = sink(&queue);
    assert!(sink.one_per_key());
    let ids: Vec<String> = (0..9).map(|n| format!("m{n}")).collect();
    let keys = ["a", "b", "a key"];
    let items: Vec<Item<'_>> =
        ids.iter().enumerate().map(|(n, id)| item(id, "t", Some(keys[n % 3]))).collect();
    for _ in 0..2 {
        assert_eq!(verdicts(&sink, &items).await, vec![Verdict::Done; 9]);
    }
    assert_eq!(verdicts(&sink, &[item("alone", "t", None)]).await, [Verdict::Done]);
    let found = arrived(&queue).await;
    assert_eq!(found.len(), 10, "{found:?}");
    for key in ["a", "b"] {
        let of_key: Vec<&str> = found
            .iter()
            .filter(|it| it.group.as_deref() == Some(key))
            .map(|it| it.deduplication.as_deref().unwrap())
            .collect();
        assert_eq!((of_key.len(), of_key.is_sorted()), (3, true), "{of_key:?}");
    }
    let group_of = |id: &str| {
        let one = found.iter().find(|it| it.deduplication.as_deref() == Some(id)).unwrap();
        one.group.clone().unwrap()
    };
    assert_eq!(group_of("alone"), "alone");
    assert_eq!((group_of("m2").len(), group_of("m2")), (64, group_of("m8")));
}

#[tokio::test]
async fn what_is_too_large_is_dead_and_the_rest_is_sent_in_calls_that_fit() {
    let queue = queue("large").await;
    // `id`, `tidegate-topic` and what they hold take 31 bytes.
    let (fits, over) = ("x".repeat(262_144 - 31), "x".repeat(262_144 - 30));
    let large = |id: &'static str, text| Item { topic: "t", ..Item::record(id, text) };
    let part = "x".repeat(100_000);
    let items = [
        large("m1", &fits),
        large("m2", &over),
        large("m3", &part),
        large("m4", &part),
        large("m5", &part),
    ];
    let found = verdicts(&sink(&queue), &items).await;
    let Verdict::Dead(reason) = &found[1] else { panic!("{found:?}") };
    assert_eq!(reason, "it is larger than SQS takes: 262145 bytes with its attributes, of 262144");
    assert_eq!(found.iter().filter(|it| **it == Verdict::Done).count(), 4);
    assert_eq!(arrived(&queue).await.len(), 4);
}

#[tokio::test]
async fn topics_have_queues_of_their_own() {
    let queue = queue("orders").await;
    let (prefix, name) = queue.rsplit_once('/').unwrap();
    let sink = sink(&format!("{prefix}/{{topic}}"));
    sink.check().await.unwrap();
    let one = item("m1", name, Some("k"));
    assert_eq!(sink.destination(&one), Some(queue.clone()));
    assert_eq!(verdicts(&sink, &[one]).await, [Verdict::Done]);
    assert_eq!(arrived(&queue).await.len(), 1);
    let Outcome::Broken(problem) = send(&sink, &[item("m2", "none", None)]).await else { panic!() };
    let expected = format!("the queue {prefix}/none does not exist in {REGION}: create it");
    assert!(problem.starts_with(&expected), "{problem}");
    let wrong = item("m3", "../other", None);
    let found = verdicts(&sink, &[wrong]).await;
    assert!(matches!(&found[0], Verdict::Dead(it) if it.contains("no queue can have the name")));
}

#[tokio::test]
async fn a_check_finds_what_is_missing() {
    let queue = queue("checked").await;
    let missing = sink(&format!("{queue}-not")).check().await.unwrap_err().to_string();
    let expected = format!(
        "{queue}-not does not exist in {REGION}: create it, or correct `queue` or `region`"
    );
    assert!(missing.ends_with(&expected), "{missing}");
    let elsewhere = at(moto(), &queue, "").check().await;
    assert!(elsewhere.is_ok());
    let config = format!("endpoint = 'http://{}'\nqueue = '{queue}'\n{KEYS}", moto());
    let config = config.replace(REGION, "us-east-2");
    let elsewhere = Sqs::new(&declared::<Config>(&config), &secrets).unwrap();
    let missing = elsewhere.check().await.unwrap_err().to_string();
    assert!(missing.contains("does not exist in us-east-2: create it, or correct"), "{missing}");
}

#[test]
fn what_is_out_of_bounds_is_refused() {
    let made = |text: &str| {
        let config: Config = toml::from_str(text).unwrap();
        refusal(Sqs::new(&config, &secrets))
    };
    let queue = "queue = 'http://127.0.0.1/1/q'\nendpoint = 'https://127.0.0.1'";
    assert!(made(queue).contains("is a loopback address"), "{}", made(queue));
    let clear = "queue = 'http://h/1/q'\nendpoint = 'http://h'";
    assert!(made(clear).contains("sends secrets in the clear"), "{}", made(clear));
}

#[tokio::test]
async fn a_service_comes_and_goes() {
    let queue = queue("gate").await;
    let mut gate = Gate::closed(moto());
    let sink = at(gate.address(), &queue, "timeout = 2");
    let one = [item("one", "t", Some("k"))];
    let Outcome::Unavailable(reason) = send(&sink, &one).await else { panic!() };
    assert!(reason.starts_with("cannot connect to 127.0.0.1"), "{reason}");
    let error = sink.check().await.unwrap_err().to_string();
    assert!(error.contains("cannot connect to"), "{error}");
    gate.open();
    sink.check().await.unwrap();
    until_done(&sink, &one).await;
    gate.shut();
    assert!(matches!(send(&sink, &one).await, Outcome::Unavailable(_)));
    gate.open();
    until_done(&sink, &one).await;
    gate.stall();
    assert_eq!(send(&sink, &one).await, Outcome::TimedOut);
    gate.open();
    until_done(&sink, &one).await;
}
