//! What can be done to a store, at random. Numbers that pick a batch or a lease count back from the
//! newest one, around if need be, so that every sequence makes sense.

use proptest::{
    collection::vec,
    option::weighted,
    prelude::{Just, Strategy, any},
    prop_oneof,
};

/// One step.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Submit { runs: u64, other_snapshot: bool },
    Claim(Claiming),
    Settle { worker: usize, acts: Vec<Act>, lasts: bool },
    SendAgain { settlement: usize },
    Renew { leases: Vec<usize>, lasts: bool },
    GiveBack { leases: Vec<usize> },
    FinalizeAll,
    FinalizeOne { batch: usize },
    Cancel { batch: usize },
    Retry { batch: usize, from: u64 },
}

/// What a claim asks for.
#[derive(Clone, Debug)]
pub(super) struct Claiming {
    pub(super) slots: usize,
    pub(super) most: u64,
    pub(super) least: u64,
    /// Another length for one batch.
    pub(super) known_length: Option<(usize, u64)>,
    pub(super) only: Option<usize>,
    pub(super) knows_snapshot: bool,
    pub(super) lasts: bool,
}

/// What became of a lease: its next `runs` runs are settled, with these fates in turn.
#[derive(Clone, Debug)]
pub(super) struct Act {
    pub(super) lease: usize,
    pub(super) runs: u64,
    pub(super) fates: Vec<Fate>,
}

/// What became of a run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fate {
    Done,
    RetryAtOnce,
    RetryLater,
    Dead,
}

/// Sequences that begin with a batch.
pub(super) fn sequences() -> impl Strategy<Value = Vec<Operation>> {
    (submit(), vec(operation(), 1..30)).prop_map(|(first, mut operations)| {
        operations.insert(0, first);
        operations
    })
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        2 => submit(),
        8 => claim(),
        9 => settle(),
        1 => (0..3_usize).prop_map(|settlement| Operation::SendAgain { settlement }),
        1 => (vec(0..8_usize, 1..3), any::<bool>())
            .prop_map(|(leases, lasts)| Operation::Renew { leases, lasts }),
        1 => vec(0..8_usize, 1..3).prop_map(|leases| Operation::GiveBack { leases }),
        2 => Just(Operation::FinalizeAll),
        1 => (0..3_usize).prop_map(|batch| Operation::FinalizeOne { batch }),
        1 => (0..6_usize).prop_map(|batch| Operation::Cancel { batch }),
        2 => (0..3_usize, prop_oneof![3 => Just(0), 1 => 0..8_u64])
            .prop_map(|(batch, from)| Operation::Retry { batch, from }),
    ]
}

fn submit() -> impl Strategy<Value = Operation> {
    let runs = prop_oneof![4 => 1..8_u64, 2 => 8..60_u64, 1 => Just(1_000_000_000_000)];
    (runs, any::<bool>())
        .prop_map(|(runs, other_snapshot)| Operation::Submit { runs, other_snapshot })
}

fn claim() -> impl Strategy<Value = Operation> {
    let lengths = (1..12_u64, 1..5_u64, weighted(0.2, (0..3_usize, 1..12_u64)));
    let which = (0..5_usize, weighted(0.2, 0..3_usize), any::<bool>(), any::<bool>());
    (lengths, which).prop_map(|((most, least, known_length), (slots, only, knows, lasts))| {
        let knows_snapshot = knows;
        Operation::Claim(Claiming { slots, most, least, known_length, only, knows_snapshot, lasts })
    })
}

fn settle() -> impl Strategy<Value = Operation> {
    let act = (0..6_usize, prop_oneof![1 => 1..6_u64, 2 => Just(u64::MAX)], vec(fate(), 1..6))
        .prop_map(|(lease, runs, fates)| Act { lease, runs, fates });
    (0..2_usize, vec(act, 1..4), any::<bool>())
        .prop_map(|(worker, acts, lasts)| Operation::Settle { worker, acts, lasts })
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        6 => Just(Fate::Done),
        2 => Just(Fate::RetryAtOnce),
        1 => Just(Fate::RetryLater),
        1 => Just(Fate::Dead),
    ]
}
