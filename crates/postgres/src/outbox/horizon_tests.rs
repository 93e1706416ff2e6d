//! The horizon against a model of PostgreSQL: publishers, savepoints, readers and their steps in any interleaving.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// What the server knows.
#[derive(Default)]
struct Server {
    last_id: i64,
    last_number: i64,
    /// Numbers of transactions that are open: those that a snapshot does not see.
    open: BTreeSet<i64>,
    /// Transactions that hold the lock of the message table.
    locks: BTreeSet<i64>,
    /// Committed ids, with their transactions.
    committed: Vec<(i64, i64)>,
}

/// One transaction that publishes, step by step.
#[derive(Clone, Debug, Default)]
struct Publisher {
    number: Option<i64>,
    locked: bool,
    ids: Vec<i64>,
    /// It is out of the list of open transactions, but has its lock still.
    leaving: bool,
}

impl Publisher {
    /// Returns false when it is over.
    fn step(&mut self, server: &mut Server, choice: u8) -> bool {
        let Some(number) = self.number else {
            server.last_number += 1;
            server.open.insert(server.last_number);
            self.number = Some(server.last_number);
            return true;
        };
        match choice % 8 {
            _ if self.leaving => {
                server.locks.remove(&number);
                return false;
            }
            _ if !self.locked => {
                server.locks.insert(number);
                self.locked = true;
            }
            0..=3 => {
                server.last_id += 1;
                self.ids.push(server.last_id);
            }
            4 => self.ids.clear(), // rolled back to a savepoint
            5 => {
                server.open.remove(&number);
                self.leaving = true; // rolled back
            }
            _ => {
                server.committed.extend(self.ids.iter().map(|id| (*id, number)));
                server.open.remove(&number);
                self.leaving = true;
            }
        }
        true
    }
}

/// A claim: it takes a snapshot, then looks at ids, then at locks; others act in between.
struct Claim {
    asked: Asked,
    open: BTreeSet<i64>,
    next_number: i64,
    visible: BTreeSet<i64>,
    drawn: Option<i64>,
    writers: Option<Vec<i64>>,
}

impl Claim {
    fn begin(horizon: &Horizon, server: &Server) -> Self {
        let is_over = |(_, number): &&(i64, i64)| !server.open.contains(number);
        Self {
            asked: horizon.ask(),
            open: server.open.clone(),
            next_number: server.last_number + 1,
            visible: server.committed.iter().filter(is_over).map(|(id, _)| *id).collect(),
            drawn: None,
            writers: None,
        }
    }

    /// Returns true when its answer is complete.
    fn step(&mut self, server: &Server) -> bool {
        match self.drawn {
            None => self.drawn = Some(server.last_id),
            Some(drawn) if drawn > self.asked.marked && self.writers.is_none() => {
                self.writers = Some(server.locks.iter().copied().collect());
            }
            Some(_) => return true,
        }
        false
    }

    /// As `claim.sql` does it.
    fn seen(&self) -> Seen {
        let is_open = |number: &i64| self.open.contains(number) || *number >= self.next_number;
        let writers = self.asked.writers.iter().zip(&self.asked.holds);
        let open: Vec<(i64, i64)> =
            writers.filter(|(number, _)| is_open(number)).map(|(n, mark)| (*n, *mark)).collect();
        let held = open.iter().map(|(_, mark)| *mark).min().unwrap_or(i64::MAX);
        let decided = self.asked.marks.iter().copied().filter(|mark| *mark < held).max();
        Seen {
            decided: decided.unwrap_or(0),
            open: open.into_iter().map(|(number, _)| number).collect(),
            drawn: self.drawn.unwrap_or(0),
            writers: self.writers.clone(),
        }
    }
}

#[derive(Clone, Debug)]
enum Act {
    Begin,
    Publish(usize, u8),
    Claim,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        1 => Just(Act::Begin),
        5 => (any::<usize>(), any::<u8>()).prop_map(|(who, choice)| Act::Publish(who, choice)),
        4 => Just(Act::Claim),
    ];
    proptest::collection::vec(act, 0..400)
}

/// Reads with every claim what is decided, and returns what was read and what is committed.
fn run(acts: Vec<Act>) -> (Vec<i64>, BTreeSet<i64>) {
    let (mut server, mut horizon) = (Server::default(), Horizon::default());
    let mut publishers: Vec<Publisher> = Vec::new();
    let (mut claim, mut read, mut read_to): (Option<Claim>, Vec<i64>, i64) = Default::default();
    let mut claim_step = |server: &Server, horizon: &mut Horizon| {
        let under_way = claim.get_or_insert_with(|| Claim::begin(horizon, server));
        if !under_way.step(server) {
            return;
        }
        let seen = under_way.seen();
        let is_new = |id: &i64| *id > read_to && *id <= seen.decided;
        read.extend(under_way.visible.iter().copied().filter(is_new));
        read_to = read_to.max(seen.decided);
        horizon.learn(&under_way.asked, &seen);
        claim = None;
    };
    for act in acts {
        match act {
            Act::Begin => publishers.push(Publisher::default()),
            Act::Publish(who, choice) => {
                let Some(at) = who.checked_rem(publishers.len()) else { continue };
                if !publishers[at].step(&mut server, choice) {
                    publishers.swap_remove(at);
                }
            }
            Act::Claim => claim_step(&server, &mut horizon),
        }
    }
    for mut publisher in publishers {
        while publisher.step(&mut server, 7) {}
    }
    for _ in 0..12 {
        claim_step(&server, &mut horizon);
    }
    (read, server.committed.iter().map(|(id, _)| *id).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Law 5 and law 6: a late commit is never skipped, and ids are read in their order.
    #[test]
    fn everything_that_commits_is_read_once_and_in_order(acts in acts()) {
        let (read, committed) = run(acts);
        prop_assert!(read.is_sorted());
        prop_assert_eq!(read, committed.into_iter().collect::<Vec<_>>());
    }
}

/// A statement that finds these transactions open, if it has to look.
fn look(horizon: &mut Horizon, open: &[i64], writers: &[i64], drawn: i64) -> i64 {
    let asked = horizon.ask();
    let held = asked.writers.iter().zip(&asked.holds).filter(|(number, _)| open.contains(number));
    let held: Vec<(i64, i64)> = held.map(|(number, mark)| (*number, *mark)).collect();
    let below = held.iter().map(|(_, mark)| *mark).min().unwrap_or(i64::MAX);
    let decided = asked.marks.iter().copied().filter(|mark| *mark < below).max().unwrap_or(0);
    let writers = (drawn > asked.marked).then(|| writers.to_vec());
    let open = held.into_iter().map(|(number, _)| number).collect();
    horizon.learn(&asked, &Seen { decided, open, drawn, writers });
    horizon.decided
}

#[test]
fn without_open_transactions_a_second_look_decides() {
    let mut horizon = Horizon::default();
    assert_eq!(look(&mut horizon, &[], &[], 7), 0);
    assert!(horizon.is_behind());
    assert_eq!(look(&mut horizon, &[], &[], 7), 7);
    assert!(!horizon.is_behind());
    let (marks, writers, holds) = (vec![7], vec![], vec![]);
    assert_eq!(horizon.ask(), Asked { marks, writers, holds, marked: 7 });
}

#[test]
fn a_transaction_holds_back_what_was_drawn_since_it_was_seen_and_nothing_before() {
    let mut horizon = Horizon::default();
    look(&mut horizon, &[], &[], 7);
    assert_eq!(look(&mut horizon, &[50], &[50], 9), 7);
    assert_eq!(look(&mut horizon, &[50], &[50, 51], 11), 7, "50 may have drawn 8 or 9");
    assert_eq!(look(&mut horizon, &[51], &[], 11), 9, "51 may have drawn 10 or 11");
    assert_eq!(look(&mut horizon, &[], &[], 11), 11);
    assert!(horizon.writers.is_empty());
}

#[test]
fn marks_and_writers_are_bounded() {
    let mut horizon = Horizon::default();
    (0..10_000).for_each(|n| {
        look(&mut horizon, &[1], &[1], n);
    });
    assert!(horizon.marks.len() <= MOST_MARKS && horizon.writers.len() == 1);
    assert!(look(&mut horizon, &[], &[], 9_999) >= 9_900);
}

#[test]
fn a_sequence_that_was_set_back_is_noticed() {
    let mut horizon = Horizon::default();
    look(&mut horizon, &[], &[], 7);
    look(&mut horizon, &[], &[], 7);
    assert!(horizon.is_set_back(6) && !horizon.is_set_back(7));
}
