//! Transactions that publish.

use super::{Database, Lock, Mistake, On, Owner};
use rand::{RngExt, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;

/// What a transaction does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It gets a number.
    Number,
    /// It locks the table.
    Lock,
    /// A message gets its id.
    Draw(usize),
    /// Whatever follows may be undone.
    Savepoint,
    /// What follows the savepoint is undone: its messages, and its lock.
    RollBackTo,
    /// A session's lock becomes one that all can see at once.
    Share,
    /// It is prepared: listed, and still under way.
    Prepare,
    /// Its lock goes to the prepared transaction.
    Move(Kind),
    /// It is not under way any more. From now on others see what it wrote, if it has not rolled back.
    Leave {
        /// Or it rolls back.
        commits: bool,
    },
    /// If it was prepared, it is not listed any more.
    Unlist,
    /// It gives its lock up.
    Release(Kind),
}

/// A kind of lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// On the table.
    Table,
    /// On the own number.
    Number,
}

/// The steps of a transaction that publishes these messages, or not.
pub fn steps(rng: &mut ChaCha8Rng, messages: &[usize], mistake: Option<Mistake>) -> Vec<Step> {
    let mut steps = Vec::new();
    if rng.random_bool(0.3) {
        steps.extend(undone(rng, messages));
    }
    let mut first = vec![Step::Number, Step::Lock];
    first.retain(|step| !steps.contains(step) || *step == Step::Lock);
    first.shuffle(rng);
    steps.extend(first);
    for message in messages {
        if rng.random_bool(0.1) {
            steps.extend([Step::Savepoint, Step::Draw(*message), Step::RollBackTo]);
        }
        steps.push(Step::Draw(*message));
    }
    let late = match mistake {
        Some(Mistake::LocksLate) => Some(Step::Lock),
        Some(Mistake::NumbersLate) => Some(Step::Number),
        _ => None,
    };
    if let Some(late) = late {
        steps.retain(|step| *step != late);
        steps.push(late);
    }
    if rng.random_bool(0.4) {
        let mut moves = [Step::Move(Kind::Table), Step::Move(Kind::Number)];
        moves.shuffle(rng);
        steps.extend([Step::Share, Step::Prepare].into_iter().chain(moves));
    }
    let mut end = vec![Step::Leave { commits: rng.random_bool(0.9) }, Step::Unlist];
    let mut release = [Step::Release(Kind::Table), Step::Release(Kind::Number)];
    release.shuffle(rng);
    let at = if mistake == Some(Mistake::ReleasesEarly) { 0 } else { end.len() };
    end.splice(at..at, release);
    steps.extend(end);
    steps
}

/// A savepoint within which the transaction locks the table for the first time, and is undone.
fn undone(rng: &mut ChaCha8Rng, messages: &[usize]) -> Vec<Step> {
    let mut first = [Step::Number, Step::Lock];
    first.shuffle(rng);
    let drawn = messages.iter().map(|message| Step::Draw(*message));
    [Step::Savepoint].into_iter().chain(first).chain(drawn).chain([Step::RollBackTo]).collect()
}

/// One transaction under way.
#[derive(Clone, Debug, Default)]
pub struct Transaction {
    session: u64,
    number: Option<i64>,
    /// Ids of messages.
    drawn: Vec<(i64, usize)>,
    /// How many there were at the savepoint, and whether the table was locked.
    savepoint: (usize, bool),
    is_prepared: bool,
}

impl Transaction {
    /// One that has done nothing.
    pub fn new(session: u64) -> Self {
        Self { session, ..Self::default() }
    }

    fn owner(&self) -> Owner {
        let prepared = self.number.filter(|_| self.is_prepared).map(Owner::Prepared);
        prepared.unwrap_or(Owner::Session(self.session))
    }

    /// Does a step. Returns what others see from now on: ids of messages, by their places.
    pub fn step(&mut self, database: &mut Database, step: Step) -> Vec<(i64, usize)> {
        let (session, owner) = (Owner::Session(self.session), self.owner());
        let number = self.number.unwrap_or(0);
        let on = |kind| match kind {
            Kind::Table => On::Table,
            Kind::Number => On::Number(number),
        };
        let table = |fast| Lock { owner: session, on: On::Table, fast };
        match step {
            Step::Number => {
                database.last_number += 1;
                let number = database.last_number;
                database.open.insert(number);
                database.locks.insert(Lock { owner, on: On::Number(number), fast: false });
                self.number = Some(number);
            }
            Step::Lock => drop(database.locks.insert(table(true))),
            Step::Draw(message) => {
                database.last_id += 1;
                self.drawn.push((database.last_id, message));
            }
            Step::Savepoint => {
                self.savepoint = (self.drawn.len(), database.locks.contains(&table(true)));
            }
            Step::RollBackTo => {
                self.drawn.truncate(self.savepoint.0);
                if !self.savepoint.1 {
                    database.give_up(session, On::Table);
                }
            }
            Step::Share => {
                database.give_up(session, On::Table);
                database.locks.insert(table(false));
            }
            Step::Prepare => {
                database.prepared.insert(number);
                self.is_prepared = true;
            }
            Step::Move(kind) => {
                database.give_up(session, on(kind));
                database.locks.insert(Lock { owner, on: on(kind), fast: false });
            }
            Step::Leave { commits } => {
                database.open.remove(&number);
                return if commits { std::mem::take(&mut self.drawn) } else { Vec::new() };
            }
            Step::Unlist => {
                database.prepared.remove(&number);
            }
            Step::Release(kind) => database.give_up(owner, on(kind)),
        }
        Vec::new()
    }
}
