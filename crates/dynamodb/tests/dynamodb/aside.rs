//! What fails is kept, with its reason, and can be retried or dropped.

use crate::{
    fixture::{Fixture, drain, message, recorder},
    sink::{Behaviour, Recorder},
};
use std::time::Duration;
use tidegate_core::{
    InspectOutbox, MessageId, NewMessage, Publish, Retain,
    outbox::{AuditLine, Selection, StuckQuery, StuckState},
};

fn by() -> AuditLine {
    AuditLine { who: "me".to_owned(), why: "a test".to_owned(), ..AuditLine::default() }
}

fn messages(count: usize, keys: usize) -> Vec<NewMessage> {
    (0..count).map(|n| message("t", Some(&format!("k{}", n % keys)), n)).collect()
}

#[tokio::test]
async fn a_message_that_fails_for_a_while_holds_its_key() {
    let fixture = Fixture::new(1).await;
    fixture.open("").publish(messages(60, 6)).await.unwrap();
    let fails = (0..12).map(|n| (n.to_string(), 2)).collect();
    let sink = Recorder::new(Behaviour { fails, ..Behaviour::default() });
    drain(fixture.open(""), &sink).await;
    assert_eq!((sink.got().len(), sink.payloads().len()), (60, 60));
    assert_eq!(sink.out_of_order(), Vec::<String>::new());
    assert_eq!(fixture.open("").outstanding().await.unwrap().messages, 0);
}

#[tokio::test]
async fn the_dead_are_listed_retried_and_dropped() {
    let fixture = Fixture::new(2).await;
    let store = fixture.open("");
    store.publish(messages(100, 10)).await.unwrap();
    let refuses = (0..70).map(|n| n.to_string()).collect();
    let sink = Recorder::new(Behaviour { refuses, ..Behaviour::default() });
    drain(fixture.open(""), &sink).await;
    assert_eq!(sink.got().len(), 30, "their keys go on");
    let groups = store.dead_groups().await.unwrap();
    assert_eq!((groups.len(), groups[0].messages, groups[0].reason.as_str()), (1, 70, "never"));
    let status = store.outbox().await.unwrap();
    assert_eq!((status.topics[0].dead, status.topics[0].outstanding), (70, 0));
    let mut listed: Vec<MessageId> = Vec::new();
    loop {
        let after = listed.last().cloned();
        let query =
            StuckQuery { state: Some(StuckState::Dead), after, limit: 33, ..StuckQuery::default() };
        let page = store.stuck(query).await.unwrap();
        assert!(page.iter().all(|it| it.key.is_some() && it.reason == "never" && it.attempts == 1));
        listed.extend(page.iter().map(|it| it.id.clone()));
        if page.len() < 33 {
            break;
        }
    }
    let distinct: std::collections::BTreeSet<_> = listed.iter().collect();
    assert_eq!((listed.len(), distinct.len()), (70, 70));
    let which = Selection { ids: Some(listed[..40].to_vec()), ..Selection::default() };
    assert_eq!(store.drop_dead(which, &by()).await.unwrap(), 40);
    assert!(store.message(listed[0].clone()).await.unwrap().is_none());
    sink.behave(Behaviour::default());
    assert_eq!(store.retry_dead(Selection::default(), &by()).await.unwrap(), 30);
    assert_eq!(store.retry_dead(Selection::default(), &by()).await.unwrap(), 0);
    drain(fixture.open(""), &sink).await;
    assert_eq!(sink.got().len(), 60);
    assert_eq!(store.outstanding().await.unwrap().messages, 0);
    let audit = store.audit(10).await.unwrap();
    let lines: Vec<(&str, u64)> = audit.iter().map(|it| (it.what.as_str(), it.messages)).collect();
    assert_eq!(lines, [("retry", 30), ("drop", 40)]);
}

#[tokio::test]
async fn a_running_relay_learns_of_a_retry() {
    let fixture = Fixture::new(3).await;
    let store = fixture.open("");
    store.publish(vec![message("t", Some("k"), 1)]).await.unwrap();
    let sink =
        Recorder::new(Behaviour { refuses: ["1".to_owned()].into(), ..Behaviour::default() });
    let relay = crate::fixture::Running::start(fixture.open(""), "a", &sink);
    crate::leases::until(async || !store.dead_groups().await.unwrap().is_empty()).await;
    sink.behave(Behaviour::default());
    store.retry_dead(Selection::default(), &by()).await.unwrap();
    crate::leases::until(async || sink.got().len() == 1).await;
    relay.stop().await;
}

#[tokio::test]
async fn delivered_messages_are_read_and_removed() {
    let fixture = Fixture::new(4).await;
    let store = fixture.open("");
    let ids = store.publish(messages(30, 3)).await.unwrap();
    assert_eq!(store.seal(Duration::ZERO).await.unwrap(), None, "nothing is delivered yet");
    drain(fixture.open(""), &recorder()).await;
    assert_eq!(store.seal(Duration::from_secs(60)).await.unwrap(), None, "nothing is so old");
    let sealed = store.seal(Duration::ZERO).await.unwrap().unwrap();
    let first = store.sealed(sealed, None, 20).await.unwrap();
    let rest = store.sealed(sealed, Some(first[19].id.clone()), 20).await.unwrap();
    assert_eq!((sealed.messages, first.len(), rest.len()), (30, 20, 10));
    assert_eq!(store.discard(sealed).await.unwrap(), 30);
    assert!(store.message(ids[3].clone()).await.unwrap().is_none());
    assert_eq!(store.seal(Duration::ZERO).await.unwrap(), None);
}
