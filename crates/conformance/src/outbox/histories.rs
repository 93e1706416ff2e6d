//! Random histories of an outbox, on the memory store and on a store that is read by state: whatever can be seen must be
//! the same after every step.
//!
//! One relay has all lanes. Messages go by their place among all that were published: ids and positions are each
//! store's own. Where a relay knows which message of a key is next, a listing cannot show it, and what is due must.

use super::{
    bench::Bench,
    relay::{Relay, SINK, dead, new_message, retry},
};
use crate::{
    FreshOutbox,
    differential::{reference, search},
    harness::{AT_ONCE, LATER},
    runtime,
};
use proptest::{
    collection::vec,
    option::weighted,
    prelude::{Just, Strategy},
    prop_oneof,
    test_runner::TestCaseError,
};
use std::{collections::BTreeSet, future::Future};
use tidegate_core::{
    Message, MessageId,
    outbox::{Aside, AuditLine, KeyHash, OnDead, Selection, Settled, StuckState},
};

/// Each has an outbox of its own.
const SEQUENCES: u32 = 12;

/// One step.
#[derive(Clone, Debug)]
enum Step {
    /// Messages, each with its topic and its key.
    Publish(Vec<(usize, Option<usize>)>),
    /// So many of those that were read meet these fates in turn.
    Read(usize, Vec<Fate>),
    /// So many of those that were set aside and are due.
    Due(usize, Vec<Fate>),
    /// The relay ends, and another one takes its lanes.
    HandOver,
    /// The relay dies, and another one takes its lanes when its lease is over.
    Crash,
    RetryDead,
    DropDead,
}

/// What became of a message.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Done,
    RetryAtOnce,
    RetryLater,
    Behind,
    Later,
    Dead(OnDead),
}

/// What can be seen after a step.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    /// What the step met.
    met: Vec<usize>,
    /// The keys that it freed.
    freed: BTreeSet<(String, KeyHash)>,
    /// How many dead messages it changed.
    steered: u64,
    /// What is read next.
    unread: Vec<usize>,
    /// What is due.
    due: Vec<usize>,
    stuck: Vec<Stuck>,
    topics: Vec<Topic>,
}

#[derive(Debug, PartialEq)]
struct Stuck {
    message: usize,
    sink: String,
    state: StuckState,
    attempts: u32,
    reason: String,
    then: OnDead,
    /// If the store knows.
    is_due: Option<bool>,
}

#[derive(Debug, PartialEq)]
struct Topic {
    topic: String,
    /// Outstanding or dead.
    all: u64,
    /// Retrying, waiting and dead, if the store knows which is next.
    states: Option<(u64, u64, u64)>,
}

/// Compares an outbox that is read by state with that of the memory store; panics with the shortest history found that
/// tells them apart. See [`differential`](crate::differential).
pub fn outbox_histories<F: Future<Output = FreshOutbox>>(fixture: impl Fn() -> F) {
    let runtime = runtime();
    search(SEQUENCES, sequences(), |steps| {
        runtime.block_on(async {
            let fresh = fixture().await;
            let bench = fresh.outbox_bench();
            let knows = bench.has_lines();
            let mut store = Side::start(bench, knows).await;
            let mut reference = Side::start(reference().outbox_bench(), knows).await;
            for (n, step) in steps.iter().enumerate() {
                let (expected, found) = (reference.play(step).await, store.play(step).await);
                if expected != found {
                    let why =
                        format!("step {n}: expected\n  {expected:?}\nand there was\n  {found:?}");
                    return Err(TestCaseError::fail(why));
                }
            }
            drop(store);
            fresh.close().await;
            Ok(())
        })
    });
}

fn sequences() -> impl Strategy<Value = Vec<Step>> {
    let steps = prop_oneof![
        3 => publish(),
        6 => (1..6_usize, fates()).prop_map(|(most, fates)| Step::Read(most, fates)),
        5 => (1..6_usize, fates()).prop_map(|(most, fates)| Step::Due(most, fates)),
        1 => Just(Step::HandOver),
        1 => Just(Step::Crash),
        1 => Just(Step::RetryDead),
        1 => Just(Step::DropDead),
    ];
    (publish(), vec(steps, 1..12)).prop_map(|(first, mut steps)| {
        steps.insert(0, first);
        steps
    })
}

fn publish() -> impl Strategy<Value = Step> {
    vec((0..2_usize, weighted(0.85, 0..3_usize)), 1..7).prop_map(Step::Publish)
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let then = prop_oneof![Just(OnDead::Skip), Just(OnDead::Block), Just(OnDead::Park)];
    let fate = prop_oneof![
        5 => Just(Fate::Done),
        3 => Just(Fate::RetryAtOnce),
        1 => Just(Fate::RetryLater),
        4 => Just(Fate::Behind),
        1 => Just(Fate::Later),
        2 => then.prop_map(Fate::Dead),
    ];
    vec(fate, 1..6)
}

/// One of the two stores, with its relay.
struct Side {
    bench: Bench,
    relay: Relay,
    relays: usize,
    /// Whether both stores know which message of a key is next.
    knows: bool,
}

impl Side {
    async fn start(bench: Bench, knows: bool) -> Self {
        let relay = Relay::start(&bench, "relay 0").await;
        Self { bench, relay, relays: 1, knows }
    }

    async fn play(&mut self, step: &Step) -> Seen {
        let mut seen = Seen::default();
        match step {
            Step::Publish(messages) => {
                const KEYS: [&str; 3] = ["a", "b", "c"];
                let new = |(topic, key): &(usize, Option<usize>)| {
                    new_message(["t", "u"][*topic], key.map(|key| KEYS[key]))
                };
                self.bench.publish(messages.iter().map(new).collect()).await;
            }
            Step::Read(most, fates) => {
                let read = self.relay.read().await;
                self.meet(&read[..read.len().min(*most)], fates, false, &mut seen).await;
            }
            Step::Due(most, fates) => {
                let due = self.relay.due().await;
                self.meet(&due[..due.len().min(*most)], fates, true, &mut seen).await;
            }
            Step::HandOver => {
                self.relay.give_back(usize::MAX, true).await;
                self.relay = Relay::start(&self.bench, &format!("relay {}", self.relays)).await;
                self.relays += 1;
            }
            Step::Crash => {
                self.relay.share(AT_ONCE).await;
                self.relay = Relay::succeed(&self.bench, &format!("relay {}", self.relays)).await;
                self.relays += 1;
            }
            Step::RetryDead => seen.steered = self.steer(true).await,
            Step::DropDead => seen.steered = self.steer(false).await,
        }
        self.look(seen).await
    }

    /// Relays may go on from what was decided when they say next that they live.
    async fn steer(&mut self, retry: bool) -> u64 {
        let (store, by) = (&self.bench.store, AuditLine::default());
        let steered = match retry {
            true => store.retry_dead(Selection::default(), &by).await,
            false => store.drop_dead(Selection::default(), &by).await,
        };
        self.relay.share(LATER).await;
        steered.expect("decide about the dead")
    }

    async fn meet(&mut self, some: &[Message], fates: &[Fate], aside: bool, seen: &mut Seen) {
        seen.met = self.places(some);
        let Some(last) = some.last() else { return };
        let mut step = self.relay.step();
        if !aside {
            step = step.to(last.position);
        }
        for (message, fate) in some.iter().zip(fates.iter().cycle()) {
            step = match fate {
                Fate::Done if aside => step.done(message),
                Fate::Done => step,
                Fate::RetryAtOnce => step.aside(message, retry(AT_ONCE)),
                Fate::RetryLater => step.aside(message, retry(LATER)),
                Fate::Behind => step.aside(message, Aside::Behind),
                Fate::Later => step.aside(message, Aside::Later { delay: LATER }),
                Fate::Dead(then) => step.aside(message, dead(*then)),
            };
        }
        let Settled { freed, .. } = step.send().await;
        seen.freed = freed.into_iter().map(|key| (key.sink, key.key)).collect();
    }

    async fn look(&mut self, mut seen: Seen) -> Seen {
        seen.unread = self.places(&self.relay.read().await);
        seen.due = self.places(&self.relay.due().await);
        let place = |id: &MessageId| self.bench.place_of(id).expect("it was published here");
        let stuck = self.bench.all_stuck().await.into_iter().map(|stuck| Stuck {
            message: place(&stuck.id),
            sink: stuck.sink,
            state: stuck.state,
            attempts: stuck.attempts,
            reason: stuck.reason,
            then: stuck.then,
            is_due: stuck.due_in.map(|due| due < LATER / 2).filter(|_| self.knows),
        });
        seen.stuck = stuck.collect();
        assert!(seen.stuck.iter().all(|stuck| stuck.sink == SINK));
        let topics = self.bench.outbox().await.topics.into_iter().map(|topic| Topic {
            all: topic.outstanding + topic.dead,
            states: self.knows.then_some((topic.retrying, topic.waiting, topic.dead)),
            topic: topic.topic,
        });
        seen.topics = topics.collect();
        seen
    }

    fn places(&self, messages: &[Message]) -> Vec<usize> {
        let place = |message: &Message| self.bench.place_of(&message.id);
        messages.iter().map(|message| place(message).expect("it was published here")).collect()
    }
}
