//! Which ids are decided, in any interleaving of transactions that publish and claims that read: a late commit is never
//! skipped, and ids are read in their order.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;
use tidegate_core::outbox::horizon::{Asked, Horizon};
use tidegate_sim::relay::database::{Database, Look, Mistake, Step, Transaction, steps};

/// Who acts next.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// A transaction that publishes so many messages begins. The number decides the rest about it.
    Begin(u64, usize),
    /// One of those that are under way goes on.
    Publish(usize),
    /// The reader goes on.
    Read,
}

/// Steps that are still to be done, the last one first.
type UnderWay = (Transaction, Vec<Step>);

#[derive(Default)]
struct World {
    mistake: Option<Mistake>,
    database: Database,
    transactions: Vec<UnderWay>,
    begun: u64,
    /// Ids whose messages others can see.
    committed: BTreeSet<i64>,
    horizon: Horizon,
    /// A claim under way, what it was asked about, and what it can see.
    claim: Option<(Look, Asked, BTreeSet<i64>)>,
    read: Vec<i64>,
    read_to: i64,
}

impl World {
    fn begin(&mut self, seed: u64, messages: usize) {
        let messages: Vec<usize> = (0..messages).collect();
        let mut steps = steps(&mut ChaCha8Rng::seed_from_u64(seed), &messages, self.mistake);
        steps.reverse();
        self.begun += 1;
        self.transactions.push((Transaction::new(self.begun), steps));
    }

    fn publish(&mut self, who: usize) {
        let Some(at) = who.checked_rem(self.transactions.len()) else { return };
        let (transaction, steps) = &mut self.transactions[at];
        match steps.pop() {
            Some(step) => {
                let committed = transaction.step(&mut self.database, step);
                self.committed.extend(committed.iter().map(|(id, _)| *id));
            }
            None => drop(self.transactions.swap_remove(at)),
        }
    }

    fn read(&mut self) {
        let Some((look, asked, visible)) = &mut self.claim else {
            let look = Look::begin(&self.database, self.mistake);
            self.claim = Some((look, self.horizon.ask(), self.committed.clone()));
            return;
        };
        if look.step(&self.database, asked) {
            let seen = look.seen(asked);
            let is_new = |id: &&i64| **id > self.read_to && **id <= seen.decided;
            self.read.extend(visible.iter().filter(is_new));
            self.read_to = self.read_to.max(seen.decided);
            self.horizon.learn(asked, &seen);
            self.claim = None;
        }
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Begin(seed, messages) => self.begin(seed, messages),
            Act::Publish(who) => self.publish(who),
            Act::Read => self.read(),
        }
    }
}

/// What is read in the end, and what was committed.
fn happen(acts: &[Act], mistake: Option<Mistake>) -> (Vec<i64>, Vec<i64>) {
    let mut world = World { mistake, ..World::default() };
    acts.iter().for_each(|act| world.act(*act));
    while !world.transactions.is_empty() {
        world.publish(0);
    }
    for _ in 0..20 {
        world.read();
    }
    (world.read, world.committed.into_iter().collect())
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        1 => (any::<u64>(), 1_usize..4).prop_map(|(seed, messages)| Act::Begin(seed, messages)),
        8 => any::<usize>().prop_map(Act::Publish),
        6 => Just(Act::Read),
    ];
    proptest::collection::vec(act, 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn everything_that_commits_is_read_once_and_in_order(acts in acts()) {
        let (read, committed) = happen(&acts, None);
        prop_assert_eq!(read, committed);
    }
}

/// Each step is needed, and so is its place.
#[test]
fn every_mistake_loses_messages() {
    let loses = |mistake, seed| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let acts: Vec<Act> = (0..300)
            .map(|_| match rng.random_range(0..15) {
                0 => Act::Begin(rng.random(), rng.random_range(1..4)),
                1..=8 => Act::Publish(rng.random_range(0..100)),
                _ => Act::Read,
            })
            .collect();
        let (read, committed) = happen(&acts, Some(mistake));
        read != committed
    };
    let found =
        Mistake::ALL.map(|mistake| (mistake, (0..2_000).filter(|it| loses(mistake, *it)).count()));
    assert!(found.iter().all(|(_, times)| *times > 5), "{found:?}");
    println!("{found:?}");
}
