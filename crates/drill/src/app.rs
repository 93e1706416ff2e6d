//! What all connections share: the spec, the clock, the ledger behind its lock.

use crate::{
    answer::Flavor,
    counters::Counters,
    dataverse::Tokens,
    execution::Fate,
    ledger::{Arrival, End, Ledger, Throttle, Ticket},
    limits::Standing,
    spec::Spec,
    work::Work,
};
use axum::http::{HeaderMap, header};
use std::{
    borrow::Cow,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Shared by all connections.
pub struct App {
    pub spec: Arc<Spec>,
    start: Instant,
    ledger: Mutex<Ledger>,
    tokens: Mutex<Tokens>,
}

impl App {
    pub fn new(spec: Spec) -> Self {
        let spec = Arc::new(spec);
        Self {
            start: Instant::now(),
            ledger: Mutex::new(Ledger::new(Arc::clone(&spec))),
            tokens: Mutex::default(),
            spec,
        }
    }

    /// The time since the start.
    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    pub fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn tokens(&self) -> MutexGuard<'_, Tokens> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn counters(&self) -> Counters {
        self.ledger().counters()
    }

    /// On whose account a request goes; `None` if nobody may send it.
    pub fn credential<'h>(&self, flavor: Flavor, headers: &'h HeaderMap) -> Option<Cow<'h, str>> {
        let value = headers.get(header::AUTHORIZATION).map(|value| value.to_str());
        let value = value.transpose().ok()?;
        if flavor == Flavor::Dataverse {
            let token = value.and_then(|value| value.strip_prefix("Bearer "));
            let user = token.and_then(|token| self.tokens().user(token, self.now()));
            if user.is_some() || !self.spec.dataverse.users.is_empty() {
                return user.map(Cow::Owned);
            }
        }
        let accepted = &self.spec.authorization;
        let known = |value: &str| accepted.iter().any(|accepted| accepted == value);
        let welcome = accepted.is_empty() || value.is_some_and(known);
        welcome.then_some(Cow::Borrowed(value.unwrap_or("anonymous")))
    }
}

/// A request's place in flight. It is freed however the request ends, even if its client goes away.
pub struct Slot {
    app: Arc<App>,
    ticket: Ticket,
    left: bool,
}

impl Slot {
    pub fn take(app: &Arc<App>, arrival: &Arrival) -> Result<Self, Throttle> {
        let now = app.now();
        let ticket = app.ledger().arrive(arrival, now)?;
        Ok(Self { app: Arc::clone(app), ticket, left: false })
    }

    pub fn fate(&self) -> Fate {
        self.ticket.fate
    }

    /// How long the request takes.
    pub fn execute(&mut self, records: usize) -> Duration {
        self.ticket.execute(&self.app.spec, records)
    }

    /// Never answers, and keeps the place until the client goes away.
    pub fn hang(&mut self, work: Option<&Work>) {
        let mut ledger = self.app.ledger();
        if let Some(work) = work {
            ledger.store(&self.ticket, work);
        }
        ledger.hang(&mut self.ticket);
    }

    /// Stores what is to be stored and frees the place.
    pub fn leave(mut self, work: Option<&Work>, end: End) -> Standing {
        self.left = true;
        let now = self.app.now();
        let mut ledger = self.app.ledger();
        if let Some(work) = work {
            ledger.store(&self.ticket, work);
        }
        ledger.leave(&self.ticket, end, now)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if !self.left {
            let now = self.app.now();
            self.app.ledger().leave(&self.ticket, End::Abandoned, now);
        }
    }
}
