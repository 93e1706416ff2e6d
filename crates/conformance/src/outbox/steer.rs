//! What people decide about the dead.

use super::{
    bench::Bench,
    relay::{Relay, dead, ids, new_message, retry, tick},
    settle::started,
};
use crate::harness::{AT_ONCE, LATER};
use tidegate_core::{
    Message, MessageId,
    outbox::{
        Aside, AuditLine, Decision, OnDead, Origin, Selection, SteerPage, Stuck,
        StuckState::{Behind, Dead, Retry},
    },
};

fn by(who: &str) -> AuditLine {
    let why = "it's \"fixed\" now".to_owned();
    AuditLine { who: who.to_owned(), why, ..AuditLine::default() }
}

fn these(messages: &[&Message]) -> Selection {
    let ids = Some(messages.iter().map(|message| message.id.clone()).collect());
    Selection { ids, ..Selection::default() }
}

async fn retry_dead(bench: &Bench, which: Selection) -> u64 {
    bench.store.retry_dead(which, &by("ann")).await.expect("retry the dead")
}

async fn drop_dead(bench: &Bench, which: Selection) -> u64 {
    bench.store.drop_dead(which, &by("bob")).await.expect("drop the dead")
}

/// A dead head, two behind it, and one of another key.
async fn dead_line(bench: &Bench, then: OnDead) -> (Relay, Vec<Message>) {
    let (mut relay, read) = started(bench, &[Some("k"), Some("k"), Some("k"), Some("l")]).await;
    let step = relay.step().to(read[3].position).aside(&read[0], dead(then));
    let step = step.aside(&read[1], Aside::Behind).aside(&read[2], Aside::Behind);
    step.aside(&read[3], retry(LATER)).send().await;
    (relay, read)
}

pub(crate) async fn a_retried_message_is_due_with_all_attempts_and_the_rest_follows(bench: Bench) {
    for then in [OnDead::Block, OnDead::Park] {
        let (mut relay, read) = dead_line(&bench, then).await;
        assert_eq!(retry_dead(&bench, Selection::default()).await, 1);
        assert_eq!(retry_dead(&bench, Selection::default()).await, 0, "none is dead any more");
        let stuck = bench.all_stuck().await;
        assert_eq!((stuck[0].state, stuck[0].attempts), (Retry, 0));
        assert_eq!((stuck[0].then, stuck[0].due_in), (OnDead::Skip, Some(AT_ONCE)));
        assert_eq!(stuck[0].reason, "bad luck", "why it died is still to be seen");
        assert_eq!((stuck[1].state, stuck[2].state), (Behind, Behind));
        relay.heed().await;
        let due = relay.due().await;
        assert_eq!(ids(&due), ids(&read[..3]));
        assert!(matches!(due[0].origin, Origin::Aside { attempts: 0, .. }));
        let step = due.iter().fold(relay.step(), |step, message| step.done(message));
        assert_eq!(step.done(&read[3]).send().await.freed.len(), 2);
        relay.end().await;
    }
}

/// A store may leave it to the relay's next sharing to go on.
pub(crate) async fn what_waits_behind_a_dropped_message_goes_on(bench: Bench) {
    for then in [OnDead::Block, OnDead::Park] {
        let (mut relay, read) = dead_line(&bench, then).await;
        assert_eq!(drop_dead(&bench, Selection::default()).await, 1);
        relay.share(LATER).await;
        assert_eq!(
            bench.states().await,
            [
                (read[1].id.clone(), Retry),
                (read[2].id.clone(), Behind),
                (read[3].id.clone(), Retry)
            ]
        );
        assert_eq!(bench.store.message(read[0].id.clone()).await.expect("look for it"), None);
        assert_eq!(ids(&relay.due().await), ids(&read[1..3]));
        let step = relay.step().done(&read[1]).done(&read[2]).done(&read[3]);
        assert_eq!(step.send().await.freed.len(), 2);
        relay.end().await;
    }
}

pub(crate) async fn dropped_while_nobody_has_the_lane_the_next_relay_goes_on(bench: Bench) {
    let (relay, read) = dead_line(&bench, OnDead::Block).await;
    relay.end().await;
    assert_eq!(drop_dead(&bench, these(&[&read[0]])).await, 1);
    let relay = Relay::start(&bench, "b").await;
    assert_eq!(ids(&relay.due().await), ids(&read[1..3]));
}

pub(crate) async fn only_the_dead_among_the_chosen_are_changed(bench: Bench) {
    let topics = ["a", "a", "b", "b", "b"];
    bench.publish(topics.map(|topic| new_message(topic, None)).to_vec()).await;
    let mut relay = Relay::start(&bench, "a").await;
    let read = relay.read().await;
    let because =
        |reason: &str| Aside::Dead { attempts: 2, reason: reason.to_owned(), then: OnDead::Skip };
    let step = relay.step().to(read[4].position).aside(&read[0], because("status 500"));
    let step = step.aside(&read[1], because("status 400")).aside(&read[2], because("status 500"));
    step.aside_for(&read[3], "x", because("status 50%")).aside(&read[4], retry(LATER)).send().await;
    let any = Selection::default;
    let nowhere = Selection { topic: Some("c".into()), ..any() };
    assert_eq!(retry_dead(&bench, nowhere.clone()).await, 0);
    assert_eq!(drop_dead(&bench, nowhere).await, 0);
    assert_eq!(drop_dead(&bench, these(&[&read[4]])).await, 0, "it is not dead");
    let server = Selection { topic: Some("b".into()), reason: Some("50".into()), ..any() };
    let server = Selection { sink: Some("x".into()), ..server };
    assert_eq!(retry_dead(&bench, server).await, 1);
    assert_eq!(retry_dead(&bench, these(&[&read[0], &read[4]])).await, 1);
    let client = Selection { reason: Some("400".into()), ..any() };
    assert_eq!(drop_dead(&bench, client).await, 1);
    let states = bench.states().await;
    let expected = [(0, Retry), (2, Dead), (3, Retry), (4, Retry)];
    assert_eq!(states, expected.map(|(n, state)| (read[n].id.clone(), state)));
}

pub(crate) async fn every_decision_leaves_an_audit_line(bench: Bench) {
    let (mut relay, read) = dead_line(&bench, OnDead::Block).await;
    let audit = async |limit| bench.store.audit(limit).await.expect("read the audit lines");
    assert_eq!(audit(10).await, []);
    retry_dead(&bench, these(&[&read[0]])).await;
    tick().await;
    drop_dead(&bench, Selection::default()).await;
    let lines = audit(10).await;
    assert!(lines.iter().all(|line| line.at_ms > 0), "{lines:?}");
    let unstamped: Vec<AuditLine> =
        lines.iter().map(|line| AuditLine { at_ms: 0, ..line.clone() }).collect();
    let line =
        |who: &str, what: &str, messages| AuditLine { what: what.to_owned(), messages, ..by(who) };
    assert_eq!(unstamped, [line("ann", "retry", 1)], "nothing was dropped");
    relay.step().aside(&read[0], dead(OnDead::Skip)).send().await;
    tick().await;
    drop_dead(&bench, Selection::default()).await;
    let lines = audit(10).await;
    assert_eq!(lines.len(), 2);
    assert_eq!(AuditLine { at_ms: 0, ..lines[0].clone() }, line("bob", "drop", 1), "newest first");
    assert_eq!(audit(1).await, lines[..1]);
}

pub(crate) async fn a_dropped_message_frees_no_other_key(bench: Bench) {
    let (mut relay, read) = started(&bench, &[Some("k"), Some("l"), Some("k"), Some("l")]).await;
    let step = relay.step().to(read[3].position).aside(&read[0], dead(OnDead::Block));
    let step = step.aside(&read[1], dead(OnDead::Block)).aside(&read[2], Aside::Behind);
    step.aside(&read[3], Aside::Behind).send().await;
    assert_eq!(drop_dead(&bench, these(&[&read[0]])).await, 1);
    relay.share(LATER).await;
    let expected: [(MessageId, _); 3] =
        [(read[1].id.clone(), Dead), (read[2].id.clone(), Retry), (read[3].id.clone(), Behind)];
    assert_eq!(bench.states().await, expected);
}

/// A page looks at so many of the dead, chosen or not; the next one goes on behind it. All of them have one audit
/// line, and whatever is done is done.
pub(crate) async fn a_decision_is_carried_out_page_by_page(bench: Bench) {
    let keys = [Some("k"), None, Some("k"), Some("l"), Some("k"), Some("l"), None];
    for decision in [Decision::Retry, Decision::Drop] {
        let (mut relay, read) = started(&bench, &keys).await;
        let all = read.iter().fold(relay.step().to(read[6].position), |step, message| {
            step.aside(message, dead(OnDead::Skip))
        });
        all.send().await;
        let before = bench.store.audit(10).await.expect("read the audit lines").len();
        let (mut page, mut seen) = (page(decision, 3), Vec::new());
        loop {
            let steered = bench.store.steer_dead(page.clone()).await.expect("one page");
            seen.push((steered.messages, steered.next.clone()));
            let still = bench.states().await.iter().filter(|(_, state)| *state == Dead).count();
            let done: u64 = seen.iter().map(|(messages, _)| messages).sum();
            assert_eq!(still as u64, 7 - done, "a page is durable");
            (page.line, page.after) = (steered.line, steered.next);
            if page.after.is_none() {
                break;
            }
        }
        let mut by_id = ids(&read);
        by_id.sort_unstable();
        let last = |seen: &(u64, Option<MessageId>)| seen.1.clone();
        if bench.lists_by_id() {
            let expected = [Some(by_id[2].clone()), Some(by_id[5].clone()), None];
            assert_eq!(seen.iter().map(last).collect::<Vec<_>>(), expected);
        }
        assert_eq!(seen.iter().map(|(messages, _)| *messages).collect::<Vec<_>>(), [3, 3, 1]);
        let lines = bench.store.audit(10).await.expect("read the audit lines");
        assert_eq!((lines.len(), lines[0].messages), (before + 1, 7));
        if decision == Decision::Retry {
            let states = [Retry, Retry, Behind, Retry, Behind, Behind, Retry];
            let expected: Vec<_> = read.iter().map(|it| it.id.clone()).zip(states).collect();
            assert_eq!(bench.states().await, expected, "of a key, the first comes first");
            relay.heed().await;
            let due = relay.due().await;
            assert_eq!(ids(&due), ids(&read));
            due.iter().fold(relay.step(), |step, message| step.done(message)).send().await;
        }
        assert_eq!(bench.states().await, []);
        relay.end().await;
    }
}

pub(crate) async fn a_page_passes_over_what_is_not_chosen(bench: Bench) {
    let topics = ["a", "a", "a", "b", "a", "b"];
    bench.publish(topics.map(|topic| new_message(topic, None)).to_vec()).await;
    let mut relay = Relay::start(&bench, "a").await;
    let read = relay.read().await;
    let all = read.iter().fold(relay.step().to(read[5].position), |step, message| {
        step.aside(message, dead(OnDead::Skip))
    });
    all.send().await;
    let listed = bench.listed().await;
    let which = Selection { topic: Some("b".into()), ..Selection::default() };
    let mut page = SteerPage { which, ..page(Decision::Retry, 2) };
    let mut changed = Vec::new();
    for _ in 0..3 {
        let steered = bench.store.steer_dead(page.clone()).await.expect("one page");
        changed.push(steered.messages);
        (page.line, page.after) = (steered.line, steered.next);
        assert!(page.after.is_some(), "the page was full");
    }
    let chosen = |page: &[Stuck]| page.iter().filter(|it| it.topic == "b").count() as u64;
    assert_eq!(changed, listed.chunks(2).map(chosen).collect::<Vec<_>>());
    let steered = bench.store.steer_dead(page).await.expect("one page");
    assert_eq!((steered.messages, steered.next), (0, None));
    let ids = Some(vec![
        read[4].id.clone(),
        read[0].id.clone(),
        read[4].id.clone(),
        MessageId::number(i64::MAX),
    ]);
    let which = Selection { ids, ..Selection::default() };
    assert_eq!(drop_dead(&bench, which).await, 2, "named in any order, and twice");
}

/// A message that is retried while a later one of its key waits for its next attempt goes before it.
pub(crate) async fn a_retried_message_goes_before_later_ones_of_its_key(bench: Bench) {
    let (mut relay, read) = started(&bench, &[Some("k"), Some("k"), Some("k")]).await;
    let step = relay.step().to(read[2].position).aside(&read[0], dead(OnDead::Skip));
    step.aside(&read[1], retry(AT_ONCE)).aside(&read[2], Aside::Behind).send().await;
    assert_eq!(retry_dead(&bench, these(&[&read[0]])).await, 1);
    let states = bench.states().await.into_iter().map(|(_, state)| state).collect::<Vec<_>>();
    assert_eq!(states, [Retry, Behind, Behind]);
    relay.heed().await;
    assert_eq!(ids(&relay.due().await), ids(&read));
    relay.step().done(&read[0]).send().await;
    assert_eq!(ids(&relay.due().await), ids(&read[1..]));
}

fn page(decision: Decision, most: usize) -> SteerPage {
    let (which, after) = (Selection::default(), None);
    SteerPage { decision, which, by: by("ann"), after, most, line: None }
}
