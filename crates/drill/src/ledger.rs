//! All that the service remembers: who is in flight, what was stored, what was counted. Pure: time
//! is an argument, counted from the start of the service.

mod retry_after;

#[cfg(test)]
mod tests;

pub use retry_after::{RetryAfter, round_up};

use crate::{
    counters::Counters,
    execution::{Fate, execution},
    limits::{AccountId, Accounts, Limit, Standing},
    spec::Spec,
    work::Work,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, SystemTime},
};

/// What the service remembers.
pub struct Ledger {
    spec: Arc<Spec>,
    accounts: Accounts,
    counters: Counters,
    in_flight: u64,
    /// Keys of the records stored: 16 bytes each, so that millions fit.
    stored: HashSet<u128>,
    luck: ChaCha8Rng,
    /// How often the counters were set to zero. What arrived before counts no more.
    epoch: u64,
}

/// A request that wants to be executed.
pub struct Arrival<'a> {
    pub credential: &'a str,
    /// When it came in.
    pub at: Duration,
    /// What the clock on the wall shows: a Retry-After may be a date.
    pub wall: SystemTime,
    pub bytes: usize,
    pub affinity: bool,
    /// Whether a rejection always says when to come again.
    pub says_when: bool,
}

/// A request in flight. It must be handed back with [`Ledger::leave`].
#[derive(Debug)]
pub struct Ticket {
    account: AccountId,
    epoch: u64,
    since: Duration,
    in_flight: usize,
    noise: f64,
    execution: Duration,
    hung: bool,
    pub fate: Fate,
}

/// A request that may not be executed.
#[derive(Debug)]
pub struct Throttle {
    pub limit: Limit,
    pub retry_after: Option<RetryAfter>,
    pub standing: Standing,
}

/// How a request in flight ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Accepted,
    Refused,
    Failed,
    Unavailable,
    Abandoned,
}

impl Ticket {
    /// Decides how long the request takes, now that its records are known.
    pub fn execute(&mut self, spec: &Spec, records: usize) -> Duration {
        self.execution = execution(spec, self.in_flight, records, self.noise);
        self.execution
    }
}

impl Ledger {
    pub fn new(spec: Arc<Spec>) -> Self {
        let mut ledger = Self {
            accounts: Accounts::default(),
            counters: Counters::default(),
            in_flight: 0,
            stored: HashSet::new(),
            luck: ChaCha8Rng::seed_from_u64(spec.seed),
            epoch: 0,
            spec,
        };
        ledger.counters.throttled.budgets = vec![0; ledger.spec.budgets.len()];
        ledger
    }

    /// Takes a request in, or rejects it.
    pub fn arrive(&mut self, arrival: &Arrival, now: Duration) -> Result<Ticket, Throttle> {
        let account = self.accounts.open(arrival.credential, &self.spec);
        self.count_arrival(arrival, account);
        if let Err(limit) = self.accounts.get(account).arrive(now) {
            return Err(self.throttle(arrival, account, limit, now));
        }
        self.in_flight += 1;
        self.counters.max_in_flight = self.counters.max_in_flight.max(self.in_flight);
        Ok(Ticket {
            account,
            epoch: self.epoch,
            since: now,
            in_flight: self.in_flight as usize,
            noise: self.luck.random(),
            execution: Duration::ZERO,
            hung: false,
            fate: Fate::of(self.luck.random(), &self.spec),
        })
    }

    /// Counts a request that nobody may send.
    pub fn turn_away(&mut self, at: Duration, bytes: usize, now: Duration) {
        self.count_request(at, bytes);
        self.counters.unauthorized += 1;
        self.answered(now);
    }

    /// Stores what is to be stored of a request in flight.
    pub fn store(&mut self, ticket: &Ticket, work: &Work) {
        if ticket.epoch != self.epoch {
            return;
        }
        for key in work.kept() {
            if self.stored.insert(key) {
                self.counters.records += 1;
            } else {
                self.counters.duplicates += 1;
            }
        }
        self.counters.refused_records += work.refused() as u64;
    }

    /// The request stays in flight, and will not be answered.
    pub fn hang(&mut self, ticket: &mut Ticket) {
        ticket.hung = true;
        self.counters.dropped += u64::from(ticket.epoch == self.epoch);
    }

    /// Frees a request's place. Its answer is written after that.
    pub fn leave(&mut self, ticket: &Ticket, end: End, now: Duration) -> Standing {
        if ticket.epoch == self.epoch && !ticket.hung {
            self.count_end(end, now);
        }
        self.in_flight -= 1;
        let executed = ticket.execution.min(now.saturating_sub(ticket.since));
        let account = self.accounts.get(ticket.account);
        account.leave(now, executed);
        account.standing(now)
    }

    pub fn count_connection(&mut self) {
        self.counters.connections += 1;
    }

    pub fn count_token(&mut self) {
        self.counters.tokens += 1;
    }

    pub fn counters(&self) -> Counters {
        let mut counters = self.counters.clone();
        counters.in_flight = self.in_flight;
        let span = counters.first_request_ms.zip(counters.last_answer_ms);
        let elapsed_ms = span.map_or(0, |(first, last)| last.saturating_sub(first));
        counters.elapsed_seconds = elapsed_ms as f64 / 1e3;
        counters
    }

    /// Sets all counters to zero and forgets all records and windows. Randomness begins again; what is
    /// in flight stays there and counts no more.
    pub fn reset(&mut self) {
        let mut fresh = Self::new(Arc::clone(&self.spec));
        fresh.accounts = std::mem::take(&mut self.accounts);
        fresh.accounts.clear();
        fresh.in_flight = self.in_flight;
        fresh.counters.max_in_flight = self.in_flight;
        fresh.epoch = self.epoch + 1;
        *self = fresh;
    }

    fn throttle(
        &mut self,
        arrival: &Arrival,
        account: AccountId,
        limit: Limit,
        now: Duration,
    ) -> Throttle {
        let throttled = &mut self.counters.throttled;
        throttled.total += 1;
        match limit {
            Limit::Concurrency => throttled.concurrency += 1,
            Limit::Rate => throttled.rate += 1,
            Limit::Budget(index) => throttled.budgets[index] += 1,
        }
        self.answered(now);
        let account = self.accounts.get(account);
        let wait = match self.spec.retry_after {
            None if arrival.says_when => Some(account.room_in(limit, now)),
            declared => declared,
        };
        let retry_after =
            wait.map(|wait| RetryAfter::new(wait, self.spec.retry_after_date, arrival.wall));
        if let Some(retry_after) = retry_after {
            account.hold(now, retry_after.length(arrival.wall));
        }
        Throttle { limit, retry_after, standing: account.standing(now) }
    }

    fn count_arrival(&mut self, arrival: &Arrival, account: AccountId) {
        self.count_request(arrival.at, arrival.bytes);
        self.counters.affinity_cookies += u64::from(arrival.affinity);
        let grace = self.spec.retry_after_grace;
        let held = self.accounts.get(account).is_held(arrival.at, grace);
        self.counters.inside_retry_after += u64::from(held);
    }

    fn count_request(&mut self, at: Duration, bytes: usize) {
        self.counters.requests += 1;
        self.counters.bytes += bytes as u64;
        self.counters.first_request_ms.get_or_insert(at.as_millis() as u64);
    }

    fn count_end(&mut self, end: End, now: Duration) {
        match end {
            End::Accepted => self.counters.accepted += 1,
            End::Refused => self.counters.refused += 1,
            End::Failed => self.counters.failed += 1,
            End::Unavailable => self.counters.unavailable += 1,
            End::Abandoned => self.counters.abandoned += 1,
        }
        if end != End::Abandoned {
            self.answered(now);
        }
    }

    fn answered(&mut self, now: Duration) {
        self.counters.last_answer_ms = Some(now.as_millis() as u64);
    }
}
