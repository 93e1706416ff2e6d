//! What is published can be read by Brighter, and is relayed once.

use crate::{
    fixture::{Fixture, drain, message, recorder},
    sink::{Behaviour, Recorder},
};
use aws_sdk_dynamodb::types::AttributeValue;
use tidegate_core::{
    InspectOutbox, NewMessage, Publish,
    outbox::{AuditLine, Selection},
};
use tidegate_drill::dynamodb::Faults;
use tidegate_dynamodb::check_transaction;

#[tokio::test]
async fn messages_are_relayed_once_and_marked() {
    let fixture = Fixture::new(1).await;
    let store = fixture.open("");
    let messages: Vec<NewMessage> =
        (0..250).map(|n| message("orders", Some(&format!("k{}", n % 7)), n)).collect();
    let ids = store.publish(messages).await.unwrap();
    assert_eq!(ids.len(), 250);
    assert!(!store.message(ids[0].clone()).await.unwrap().unwrap().sent);
    let sink = recorder();
    drain(fixture.open(""), &sink).await;
    assert_eq!((sink.got().len(), sink.payloads().len()), (250, 250));
    assert_eq!(sink.out_of_order(), Vec::<String>::new());
    assert!(store.message(ids[7].clone()).await.unwrap().unwrap().sent);
    assert_eq!(store.outstanding().await.unwrap().messages, 0);
    let again = recorder();
    drain(fixture.open(""), &again).await;
    assert!(again.got().is_empty());
}

/// As Brighter's own mark, and as its sweeper looks for outstanding and delivered messages.
#[tokio::test]
async fn a_marked_message_is_delivered_to_brighter() {
    let fixture = Fixture::new(2).await;
    let store = fixture.open("&ttl=1h");
    let ids = store.publish(vec![message("orders", Some("42"), 1)]).await.unwrap();
    let outstanding = async |index: &str, shard: &str| {
        let query = fixture.client().query().table_name(fixture.table()).index_name(index);
        let query = query.key_condition_expression("TopicShard = :shard");
        let query =
            query.expression_attribute_values(":shard", AttributeValue::S(shard.to_owned()));
        query.send().await.unwrap().items().len()
    };
    assert_eq!(outstanding("Outstanding", "orders_2").await, 1);
    drain(fixture.open("&ttl=1h"), &recorder()).await;
    assert_eq!(outstanding("Outstanding", "orders_2").await, 0);
    assert_eq!(outstanding("Delivered", "orders_2").await, 1);
    let get = fixture.client().get_item().table_name(fixture.table());
    let get = get.key("MessageId", AttributeValue::S(ids[0].to_string()));
    let item = get.send().await.unwrap().item.unwrap();
    assert!(!item.contains_key("OutstandingCreatedTime"));
    for name in ["DeliveryTime", "DeliveredAt", "ExpiresAt"] {
        assert!(item.contains_key(name), "{name}");
    }
}

#[tokio::test]
async fn unprocessed_items_are_written_all_the_same() {
    let fixture = Fixture::new(3).await;
    fixture.faults(Faults { unprocessed: 0.4, ..Faults::default() });
    let store = fixture.open("");
    let messages: Vec<NewMessage> = (0..1_000).map(|n| message("t", None, n)).collect();
    store.publish(messages).await.unwrap();
    let sink = recorder();
    drain(fixture.open(""), &sink).await;
    assert_eq!((sink.got().len(), sink.payloads().len()), (1_000, 1_000));
    assert!(fixture.proxy.counters().of("BatchWriteItem").unprocessed > 100);
}

#[tokio::test]
async fn a_message_is_part_of_the_callers_transaction() {
    let fixture = Fixture::new(4).await;
    let store = fixture.open("");
    let order = message("orders", Some("7"), 7);
    let items = || store.items(&[("my-id".to_owned(), &order)]).unwrap();
    let send = async |items| {
        let client = fixture.client();
        client.transact_write_items().set_transact_items(Some(items)).send().await
    };
    send(items()).await.unwrap();
    let sink = recorder();
    drain(fixture.open(""), &sink).await;
    assert_eq!(sink.got().into_iter().map(|got| got.id).collect::<Vec<_>>(), ["my-id"]);
    let many: Vec<(String, &NewMessage)> = (0..101).map(|n| (n.to_string(), &order)).collect();
    let error = store.items(&many).unwrap_err().to_string();
    assert!(error.contains("101 actions"), "{error}");
    let large = NewMessage {
        payload: format!("\"{}\"", "x".repeat(390_000)).into_bytes(),
        ..order.clone()
    };
    let many: Vec<(String, &NewMessage)> = (0..12).map(|n| (n.to_string(), &large)).collect();
    let error = store.items(&many).unwrap_err().to_string();
    assert!(error.contains("DynamoDB takes 4194304"), "{error}");
    check_transaction(&items()).unwrap();
}

#[tokio::test]
async fn the_limit_refuses_while_too_many_are_outstanding() {
    let fixture = Fixture::new(5).await;
    let store = fixture.open("");
    store.limit_outstanding(Some(5)).await.unwrap();
    store.publish((0..5).map(|n| message("t", None, n)).collect()).await.unwrap();
    // Another process has not counted yet.
    let error = fixture.open("").publish(vec![message("t", None, 6)]).await.unwrap_err();
    assert_eq!(error.kind(), tidegate_core::Kind::Full, "{error}");
    drain(fixture.open(""), &recorder()).await;
    fixture.open("").publish(vec![message("t", None, 7)]).await.unwrap();
    assert_eq!(store.outstanding().await.unwrap().limit, Some(5));
}

#[tokio::test]
async fn missing_messages_are_named() {
    let fixture = Fixture::new(6).await;
    let store = fixture.open("");
    let ids = store.publish(vec![message("t", None, 1)]).await.unwrap();
    let error = store.messages(&[ids[0].to_string(), "absent".to_owned()]).await.unwrap_err();
    assert!(error.to_string().contains("absent"), "{error}");
    assert_eq!(store.messages(&[ids[0].to_string()]).await.unwrap().len(), 1);
}

/// The largest message that is taken can be set aside, delivered and marked.
#[tokio::test]
async fn the_largest_message_can_be_marked() {
    let fixture = Fixture::new(7).await;
    let store = fixture.open("&ttl=1h");
    let of = |bytes: usize| NewMessage {
        payload: format!("\"{}\"", "x".repeat(bytes)).into_bytes(),
        ..message("t", Some("k"), 1)
    };
    let fits = |bytes: &usize| {
        store.items(&[("an-id-of-36-characters-as-a-uuid-has".to_owned(), &of(*bytes))]).is_ok()
    };
    let (mut fit, mut large) = (400_000, 409_600);
    while large - fit > 1 {
        let middle = (fit + large) / 2;
        *(if fits(&middle) { &mut fit } else { &mut large }) = middle;
    }
    let largest = of(fit);
    let payload = String::from_utf8(largest.payload.clone()).unwrap();
    let error = store.publish(vec![of(large)]).await.unwrap_err().to_string();
    assert!(error.contains("DynamoDB takes 409600") && error.contains("marks"), "{error}");
    let ids = store.publish(vec![largest]).await.unwrap();
    let sink = Recorder::new(Behaviour { refuses: [payload].into(), ..Behaviour::default() });
    drain(fixture.open("&ttl=1h"), &sink).await;
    assert_eq!(store.dead_groups().await.unwrap().len(), 1);
    sink.behave(Behaviour::default());
    store.retry_dead(Selection::default(), &AuditLine::default()).await.unwrap();
    drain(fixture.open("&ttl=1h"), &sink).await;
    assert!(store.message(ids[0].clone()).await.unwrap().unwrap().sent);
    store.publish(vec![of(fit)]).await.unwrap();
    drain(fixture.open("&ttl=1h"), &sink).await;
    assert_eq!(sink.got().len(), 2);
}
