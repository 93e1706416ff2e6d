//! Looking at an outbox: counts that add up, listings, and single messages.

use super::{
    bench::Bench,
    relay::{Relay, SINK, dead, new_message, retry, unplaced},
    settle::started,
};
use crate::harness::{AT_ONCE, LATER};
use std::{cmp::Reverse, collections::BTreeSet};
use tidegate_core::{
    MessageId,
    outbox::{
        Aside, AuditLine, DeadGroup, Decision, Ids, OnDead, Selection, SteerPage, Stuck,
        StuckQuery, StuckState, TopicStatus,
    },
};

pub(crate) async fn status_counts_by_topic(bench: Bench) {
    let topics = ["b", "a", "b", "b", "a", "a", "b", "c"];
    bench.publish(topics.map(|topic| new_message(topic, "k")).to_vec()).await;
    let mut relay = Relay::start(&bench, "a").await;
    let read = relay.read().await;
    let step = relay.step().to(read[5].position).aside(&read[0], retry(LATER));
    let step = step.aside(&read[1], Aside::Behind).aside(&read[2], Aside::Later { delay: LATER });
    step.aside(&read[3], dead(OnDead::Skip)).aside(&read[4], Aside::Unrouted).send().await;
    let status = bench.outbox().await;
    assert_eq!((status.holder, status.limit), (None, None));
    let expected = [
        TopicStatus { outstanding: 2, waiting: 1, unrouted: 1, ..TopicStatus::default() },
        TopicStatus { outstanding: 3, retrying: 1, waiting: 1, dead: 1, ..TopicStatus::default() },
        TopicStatus { outstanding: 1, ..TopicStatus::default() },
    ];
    assert_eq!(status.topics.len(), 3);
    for ((found, expected), topic) in status.topics.into_iter().zip(expected).zip(["a", "b", "c"]) {
        assert!(found.oldest.is_some_and(|age| age < LATER));
        let topic = topic.to_owned();
        assert_eq!(TopicStatus { oldest: None, ..found }, TopicStatus { topic, ..expected });
    }
}

pub(crate) async fn a_topic_with_only_dead_has_no_oldest(bench: Bench) {
    let (mut relay, read) = started(&bench, &[None]).await;
    relay.step().to(read[0].position).aside(&read[0], dead(OnDead::Skip)).send().await;
    let status = bench.topic("t").await;
    assert_eq!((status.outstanding, status.dead, status.oldest), (0, 1, None));
    let dropped = bench.store.drop_dead(Selection::default(), &AuditLine::default()).await;
    assert_eq!(dropped.expect("drop the dead"), 1);
    assert_eq!(bench.outbox().await.topics, []);
}

pub(crate) async fn what_is_parked_counts_as_dead(bench: Bench) {
    let keys = [Some("k"), Some("l"), Some("k"), Some("l"), Some("k")];
    let (mut relay, read) = started(&bench, &keys).await;
    let step = relay.step().to(read[4].position).aside(&read[0], dead(OnDead::Park));
    let step = step.aside(&read[1], dead(OnDead::Block)).aside(&read[2], Aside::Behind);
    step.aside(&read[3], Aside::Behind).aside(&read[4], Aside::Behind).send().await;
    let status = bench.topic("t").await;
    assert_eq!((status.dead, status.waiting, status.outstanding), (4, 1, 1));
    let states: Vec<StuckState> = bench.all_stuck().await.iter().map(|s| s.state).collect();
    assert_eq!(states.iter().filter(|state| **state == StuckState::Dead).count(), 2);
}

pub(crate) async fn the_dead_are_grouped_most_first(bench: Bench) {
    let (mut relay, read) = started(&bench, &[None; 7]).await;
    let because =
        |reason: &str| Aside::Dead { attempts: 1, reason: reason.to_owned(), then: OnDead::Skip };
    let step = relay.step().to(read[6].position).aside(&read[0], because("rare"));
    let step = step.aside(&read[1], because("common")).aside(&read[3], because("common"));
    let step =
        step.aside(&read[4], because("common")).aside_for(&read[5], "other", because("rare"));
    step.aside(&read[6], retry(LATER)).send().await;
    let listed = bench.listed().await;
    let group = |sink: &str, reason: &str, which: &[usize]| {
        let is_of = |stuck: &&Stuck| which.iter().any(|n| read[*n].id == stuck.id);
        let ids: Vec<MessageId> = listed.iter().filter(is_of).map(|it| it.id.clone()).collect();
        DeadGroup {
            topic: "t".to_owned(),
            sink: sink.to_owned(),
            reason: reason.to_owned(),
            messages: ids.len() as u64,
            first: ids.first().expect("there is one").clone(),
            last: ids.last().expect("there is one").clone(),
        }
    };
    let mut groups = bench.store.dead_groups().await.expect("group the dead");
    assert!(groups.is_sorted_by_key(|group| Reverse(group.messages)), "{groups:?}");
    if !bench.lists_by_id() {
        groups[1..].sort_by_key(|group| group.first.clone());
    }
    let mut expected = [
        group(SINK, "common", &[1, 3, 4]),
        group(SINK, "rare", &[0]),
        group("other", "rare", &[5]),
    ];
    expected[1..].sort_by_key(|group| group.first.clone());
    assert_eq!(groups, expected);
}

pub(crate) async fn what_was_set_aside_is_listed_by_choice_in_pages(bench: Bench) {
    let topics = ["a", "a", "b", "b", "b"];
    bench.publish(topics.map(|topic| new_message(topic, None)).to_vec()).await;
    let mut relay = Relay::start(&bench, "a").await;
    let read = relay.read().await;
    let step = relay.step().to(read[4].position).aside(&read[0], retry(LATER));
    let step = step.aside_for(&read[1], "x", dead(OnDead::Skip)).aside(&read[2], retry(AT_ONCE));
    let step = step.aside(&read[3], dead(OnDead::Block));
    step.aside_for(&read[4], "", Aside::Unrouted).send().await;
    let list = async |query: StuckQuery| -> Vec<usize> {
        let place = |id: MessageId| read.iter().position(|message| message.id == id);
        let stuck = bench.find_stuck(query).await;
        let mut places: Vec<usize> =
            stuck.iter().map(|stuck| place(stuck.id.clone()).expect("it was read")).collect();
        places.sort_unstable();
        places
    };
    let place = |id: &MessageId| read.iter().position(|message| message.id == *id);
    let listed = bench.listed().await;
    let listed: Vec<usize> = listed.iter().filter_map(|stuck| place(&stuck.id)).collect();
    let page = |from: usize| BTreeSet::from_iter(listed[from..from + 2].iter().copied());
    let query = || StuckQuery { limit: 10, ..StuckQuery::default() };
    let which = |which| StuckQuery { which, ..query() };
    let any = Selection::default;
    assert_eq!(list(query()).await, [0, 1, 2, 3, 4]);
    let first = list(StuckQuery { limit: 2, ..query() }).await;
    assert_eq!(BTreeSet::from_iter(first), page(0));
    let after = Some(read[listed[1]].id.clone());
    let second = list(StuckQuery { limit: 2, after, ..query() }).await;
    assert_eq!(BTreeSet::from_iter(second), page(2));
    assert_eq!(list(StuckQuery { limit: 0, ..query() }).await, [0; 0]);
    assert_eq!(list(StuckQuery { state: Some(StuckState::Dead), ..query() }).await, [1, 3]);
    assert_eq!(list(StuckQuery { state: Some(StuckState::Unrouted), ..query() }).await, [4]);
    let some = vec![read[4].id.clone(), read[0].id.clone(), MessageId::number(i64::MAX)];
    assert_eq!(list(which(Selection { ids: Some(some), ..any() })).await, [0, 4]);
    assert_eq!(list(which(Selection { ids: Some(Vec::new()), ..any() })).await, [0; 0]);
    assert_eq!(list(which(Selection { topic: Some("b".into()), ..any() })).await, [2, 3, 4]);
    assert_eq!(list(which(Selection { sink: Some("x".into()), ..any() })).await, [1]);
    assert_eq!(list(which(Selection { reason: Some("ad lu".into()), ..any() })).await, [1, 3]);
    assert_eq!(list(which(Selection { reason: Some("AD LU".into()), ..any() })).await, [0; 0]);
    assert_eq!(list(which(Selection { reason: Some("%".into()), ..any() })).await, [0; 0]);
    let both = Selection { topic: Some("b".into()), reason: Some("no".into()), ..any() };
    assert_eq!(list(which(both)).await, [2]);
}

pub(crate) async fn a_message_is_found_whatever_became_of_it(bench: Bench) {
    let (mut relay, read) = started(&bench, &[Some("k"), None, Some("l")]).await;
    let find = async |id| bench.store.message(id).await.expect("look for a message");
    let step = relay.step().to(read[1].position).aside(&read[1], dead(OnDead::Skip));
    step.send().await;
    let known = match bench.capabilities().ids {
        Ids::Published => 0..3,
        Ids::SetAside => 1..2,
    };
    for (message, sent) in read.iter().zip([true, false, false]).skip(known.start).take(known.len())
    {
        let found = find(message.id.clone()).await.expect("it is still there");
        assert_eq!(unplaced(&[found.message]), unplaced(std::slice::from_ref(message)));
        assert_eq!(found.sent, sent, "one was sent, one is dead, one waits");
    }
    assert_eq!(find(MessageId::number(i64::MAX)).await, None);
    assert_eq!(find(MessageId::number(0)).await, None);
}

/// A store that numbers its messages has none that is known by a text, whether or not that looks like a number, and none
/// behind it: texts come after all numbers.
pub(crate) async fn a_text_is_no_id_where_messages_have_numbers(bench: Bench) {
    let (mut relay, read) = started(&bench, &[Some("k"), None, Some("l")]).await;
    let step = relay.step().to(read[2].position).aside(&read[0], dead(OnDead::Block));
    step.aside(&read[1], dead(OnDead::Skip)).send().await;
    let before = bench.states().await;
    let sealed = bench.store.seal(AT_ONCE).await.expect("seal messages");
    let looks_alike = [read[0].id.to_string(), format!("0{}", read[1].id), read[0].name.clone()];
    let texts = ["nonsense".to_owned(), "0".to_owned(), String::new()].into_iter();
    for id in texts.chain(looks_alike).map(MessageId::text) {
        assert_eq!(bench.store.message(id.clone()).await.expect("look for a message"), None);
        let which = || Selection { ids: Some(vec![id.clone()]), ..Selection::default() };
        let query = || StuckQuery { limit: 10, ..StuckQuery::default() };
        let named = StuckQuery { which: which(), ..query() };
        assert_eq!(bench.find_stuck(named).await, [], "{id}");
        let behind = StuckQuery { after: Some(id.clone()), ..query() };
        assert_eq!(bench.find_stuck(behind).await, [], "{id}");
        let by = AuditLine::default();
        let retried = bench.store.retry_dead(which(), &by).await.expect("retry the dead");
        let dropped = bench.store.drop_dead(which(), &by).await.expect("drop the dead");
        assert_eq!((retried, dropped), (0, 0), "{id}");
        for decision in [Decision::Retry, Decision::Drop] {
            let (after, by) = (Some(id.clone()), AuditLine::default());
            let which = Selection::default();
            let page = SteerPage { decision, which, by, after, most: 10, line: None };
            let steered = bench.store.steer_dead(page).await.expect("one page");
            assert_eq!((steered.messages, steered.next), (0, None), "{id}");
        }
        if let Some(sealed) = sealed {
            let behind = bench.store.sealed(sealed, Some(id.clone()), 10).await;
            assert_eq!(behind.expect("read what was sealed"), [], "{id}");
        }
    }
    assert_eq!(bench.states().await, before);
    let both = [MessageId::text("nonsense"), read[1].id.clone()];
    let which = Selection { ids: Some(both.to_vec()), ..Selection::default() };
    let retried = bench.store.retry_dead(which, &AuditLine::default()).await;
    assert_eq!(retried.expect("retry the dead"), 1, "one that is there is found beside others");
}
