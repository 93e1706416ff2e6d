//! What can be done to an outbox, at random. Numbers that pick something go around if need be, so that
//! every sequence makes sense.

use proptest::{
    collection::vec,
    option::weighted,
    prelude::{Just, Strategy, any},
    prop_oneof,
};
use tidegate_core::outbox::OnDead;

/// One step.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Publish(Vec<New>),
    Share { relay: usize, lasts: bool, all_routes: bool },
    GiveBack { relay: usize },
    Read(Working),
    Due(Working),
    Lag { relay: usize, sink: usize, behind: Option<usize> },
    SendAgain { settlement: usize },
    RetryDead { sink: Option<usize> },
    DropDead { sink: Option<usize> },
}

/// A message to be.
#[derive(Clone, Debug)]
pub(super) struct New {
    pub(super) topic: usize,
    pub(super) key: Option<usize>,
    pub(super) delayed: bool,
}

/// A relay gets messages, and the first of them meet these fates in turn.
#[derive(Clone, Debug)]
pub(super) struct Working {
    pub(super) relay: usize,
    /// Of a sink that lags, if this one does.
    pub(super) sink: Option<usize>,
    pub(super) messages: usize,
    pub(super) fates: Vec<Fate>,
}

/// What became of a message.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fate {
    Done,
    RetryAtOnce,
    RetryLater,
    Behind,
    Later,
    DueAtOnce,
    Unrouted,
    Dead(OnDead),
    /// It goes to the other sink, and fails there.
    Elsewhere,
}

/// Sequences that begin with messages and a relay.
pub(super) fn sequences() -> impl Strategy<Value = Vec<Operation>> {
    (publish(), share(), vec(operation(), 1..25)).prop_map(|(first, second, mut operations)| {
        operations.splice(0..0, [first, second]);
        operations
    })
}

fn operation() -> impl Strategy<Value = Operation> {
    let sink = || weighted(0.5, 0..2_usize);
    prop_oneof![
        4 => publish(),
        4 => share(),
        1 => relay().prop_map(|relay| Operation::GiveBack { relay }),
        8 => working().prop_map(Operation::Read),
        8 => working().prop_map(Operation::Due),
        2 => (relay(), 0..2_usize, weighted(0.7, 0..10_usize))
            .prop_map(|(relay, sink, behind)| Operation::Lag { relay, sink, behind }),
        1 => (0..3_usize).prop_map(|settlement| Operation::SendAgain { settlement }),
        1 => sink().prop_map(|sink| Operation::RetryDead { sink }),
        1 => sink().prop_map(|sink| Operation::DropDead { sink }),
    ]
}

/// Mostly the same one, so that it is not always late.
fn relay() -> impl Strategy<Value = usize> {
    prop_oneof![5 => Just(0_usize), 1 => Just(1), 1 => Just(2)]
}

fn publish() -> impl Strategy<Value = Operation> {
    let new = (0..3_usize, weighted(0.8, 0..4_usize), proptest::bool::weighted(0.1))
        .prop_map(|(topic, key, delayed)| New { topic, key, delayed });
    vec(new, 1..12).prop_map(Operation::Publish)
}

fn share() -> impl Strategy<Value = Operation> {
    (relay(), any::<bool>(), any::<bool>())
        .prop_map(|(relay, lasts, all_routes)| Operation::Share { relay, lasts, all_routes })
}

fn working() -> impl Strategy<Value = Working> {
    (relay(), weighted(0.3, 0..2_usize), 1..8_usize, vec(fate(), 1..6))
        .prop_map(|(relay, sink, messages, fates)| Working { relay, sink, messages, fates })
}

fn fate() -> impl Strategy<Value = Fate> {
    let then = prop_oneof![Just(OnDead::Skip), Just(OnDead::Block), Just(OnDead::Park)];
    prop_oneof![
        6 => Just(Fate::Done),
        3 => Just(Fate::RetryAtOnce),
        1 => Just(Fate::RetryLater),
        4 => Just(Fate::Behind),
        1 => Just(Fate::Later),
        1 => Just(Fate::DueAtOnce),
        1 => Just(Fate::Unrouted),
        2 => then.prop_map(Fate::Dead),
        1 => Just(Fate::Elsewhere),
    ]
}
