//! One connection: what all operation classes on it share.

use crate::{
    BudgetKind, Options, Time,
    account::Account,
    answer::{Hint, Outcome, Remaining},
    bucket::Bucket,
    controller::{Controller, Held, Rejection, Started},
    decision::{Cause, Reason},
    learned::Learned,
    remember::Remembered,
    statistics::{Binding, Statistics},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

/// For so long a destination counts as having what it had.
const MOMENT: Duration = Duration::from_secs(1);

/// A credential or an endpoint. Limit = min(server hint, budgets, level), and the binding one is
/// named.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    name: String,
    options: Arc<Options>,
    classes: BTreeMap<usize, Class>,
    /// Those of the classes that are destinations.
    destinations: BTreeSet<usize>,
    in_flight: u32,
    /// So many processes share what the service allows.
    among: u32,
    /// Nothing is sent before this: a Retry-After …
    blocked_until: Time,
    /// … or one that another process was told.
    held_until: Time,
    /// What the service last asked for.
    hint: Option<u32>,
    quota: Option<Quota>,
    concurrent: Option<u32>,
    accounts: Vec<Account>,
    /// A rate that was declared.
    bucket: Option<Bucket>,
}

/// What was found out about one operation class. What the service does not say of itself is not taken to
/// hold for others: one that it rejects, or does not answer, slows down no other.
#[derive(Clone, Debug)]
struct Class {
    controller: Controller,
    learned: Learned,
    /// The most that was in flight in the last moment, and when.
    peak: (u32, Time),
}

impl Class {
    /// The most that was in flight within a moment: requests end and others follow, and what is free
    /// between them is not to spare.
    fn lately(&self, now: Time) -> u32 {
        let (peak, at) = self.peak;
        let peak = if now.saturating_sub(at) <= MOMENT { peak } else { 0 };
        peak.max(self.controller.in_flight())
    }
}

/// What the service says is left, and until when.
#[derive(Clone, Copy, Debug)]
struct Quota {
    requests: u64,
    until: Time,
}

/// Why a request has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// What holds it back.
    pub binding: Binding,
    /// When that is over by itself; `None`: when a request ends.
    pub until: Option<Time>,
}

impl Wait {
    fn for_answer(binding: Binding) -> Self {
        Self { binding, until: None }
    }

    fn until(binding: Binding, until: Time) -> Self {
        Self { binding, until: Some(until) }
    }

    /// Whether it is the service that wants to be left alone.
    pub(crate) fn is_asked(&self) -> bool {
        matches!(self.binding, Binding::RetryAfter | Binding::Quota)
    }
}

impl Connection {
    pub fn new(name: String, options: Arc<Options>) -> Self {
        let windows = |kind| kind != BudgetKind::Concurrent;
        let budgets = options.budgets.iter();
        let concurrent = budgets.clone().filter(|budget| !windows(budget.kind));
        Self {
            name,
            classes: BTreeMap::new(),
            destinations: BTreeSet::new(),
            in_flight: 0,
            among: 1,
            blocked_until: Time::ZERO,
            held_until: Time::ZERO,
            hint: None,
            quota: None,
            concurrent: concurrent.map(|budget| budget.limit as u32).min(),
            accounts: budgets.filter(|b| windows(b.kind)).map(Account::new).collect(),
            bucket: options.rate.map(Bucket::declared),
            options,
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    fn class(&mut self, class: usize, now: Time) -> &mut Controller {
        &mut self.found(class, now).controller
    }

    fn found(&mut self, class: usize, now: Time) -> &mut Class {
        let options = &self.options;
        self.classes.entry(class).or_insert_with(|| Class {
            controller: Controller::new(options.clone(), now),
            learned: Learned::default(),
            peak: (0, now),
        })
    }

    /// The class is one of several destinations, which share what one class may have.
    pub fn join(&mut self, class: usize) {
        self.destinations.insert(class);
    }

    /// Forgets a class that has nothing in flight.
    pub fn forget(&mut self, class: usize) {
        self.classes.remove(&class);
        self.destinations.remove(&class);
    }

    /// Whether it is inside a Retry-After.
    pub fn is_throttled(&self, now: Time) -> bool {
        now < self.blocked_until.max(self.held_until)
    }

    /// How much of a class may be in flight; nothing inside a Retry-After.
    pub fn limit(&mut self, class: usize, now: Time) -> u32 {
        if self.is_throttled(now) {
            return 0;
        }
        let ceiling = self.ceiling().0;
        self.class(class, now).level().min(ceiling).min(self.part(class, ceiling, now))
    }

    /// How many requests of a class may start now.
    pub fn room(&mut self, class: usize, now: Time) -> Result<u32, Wait> {
        if self.is_throttled(now) {
            let until = self.blocked_until.max(self.held_until);
            return Err(Wait::until(Binding::RetryAfter, until));
        }
        let max = self.options.max;
        let controller = self.class(class, now);
        let level = controller.level();
        let room = controller.room(now).map_err(|held| match held {
            Held::Full(until) if level == max => Wait { binding: Binding::Max, until },
            Held::Full(until) => Wait { binding: Binding::Level, until },
            Held::Asks(until) => Wait { binding: Binding::Trial, until },
            Held::Rate(until) => Wait::until(Binding::Rate, until),
            Held::Spread(until) => Wait::until(Binding::Level, until),
        })?;
        let (ceiling, binding) = self.ceiling();
        let room = room.min(ceiling.saturating_sub(self.in_flight));
        let own = self.class(class, now).in_flight();
        let room = room.min(self.part(class, ceiling, now).saturating_sub(own));
        if room == 0 {
            return Err(Wait::for_answer(binding));
        }
        self.budgets_allow(class, now)?;
        Ok(room)
    }

    /// How many requests a destination may have for the sake of the others: all of them together stay below
    /// what one alone may have, each has an equal part if it needs it, and one that takes more leaves what
    /// the others had a moment ago, and a quarter for those that come. So one that stops answering
    /// keeps what it has, and cannot take more.
    fn part(&self, class: usize, ceiling: u32, now: Time) -> u32 {
        if !self.destinations.contains(&class) {
            return u32::MAX;
        }
        let (mut total, mut others, mut busy) = (0, 0_u32, 1);
        for destination in &self.destinations {
            let Some(known) = self.classes.get(destination) else { continue };
            total += known.controller.in_flight();
            if *destination != class {
                let lately = known.lately(now);
                others = others.saturating_add(lately);
                busy += u32::from(lately > 0);
            }
        }
        let most = ceiling.min(self.options.max);
        let own = self.classes.get(&class).map_or(0, |class| class.controller.in_flight());
        let spare = if self.destinations.len() > 1 { most / 4 } else { 0 };
        let equal = if busy > 1 { most.div_ceil(busy) } else { 1 };
        let part = equal.max((most - spare).saturating_sub(others));
        part.min(own + most.saturating_sub(total))
    }

    /// The lowest ceiling that all classes share.
    fn ceiling(&self) -> (u32, Binding) {
        let ceilings = [(self.hint, Binding::Hint), (self.concurrent, Binding::Concurrent)];
        let known = ceilings.into_iter().filter_map(|(at, binding)| {
            let part = (at? / self.among).max(self.options.min_parallelism);
            Some((part, binding))
        });
        known.min_by_key(|(at, _)| *at).unwrap_or((u32::MAX, Binding::Max))
    }

    fn budgets_allow(&mut self, class: usize, now: Time) -> Result<(), Wait> {
        if let Some(quota) = self.quota
            && now < quota.until
            && quota.requests == 0
        {
            return Err(Wait::until(Binding::Quota, quota.until));
        }
        let found = self.found(class, now);
        found.learned.allows(now).map_err(|until| Wait::until(Binding::Requests, until))?;
        if let Some(bucket) = &self.bucket {
            bucket.allows(now).map_err(|until| Wait::until(Binding::Rate, until))?;
        }
        let round_trip = self.class(class, now).round_trip().as_secs_f64();
        let expected = f64::from(self.in_flight + 1) * round_trip;
        for account in &mut self.accounts {
            let (amount, binding) = match account.kind {
                BudgetKind::ExecutionSeconds => (expected, Binding::ExecutionSeconds),
                _ => (1.0, Binding::Requests),
            };
            account.allows(amount, now).map_err(|until| Wait::until(binding, until))?;
        }
        Ok(())
    }

    /// Starts a request of a class, if there is room.
    pub fn start(&mut self, class: usize, now: Time) -> Result<Started, Wait> {
        self.class(class, now).wake(now);
        self.room(class, now)?;
        self.in_flight += 1;
        if let Some(quota) = &mut self.quota {
            quota.requests = quota.requests.saturating_sub(1);
        }
        if let Some(bucket) = &mut self.bucket {
            bucket.start(now);
        }
        let found = self.found(class, now);
        if found.learned.start(now) {
            found.controller.ask_first(now);
        }
        self.charge(BudgetKind::Requests, 1.0, now);
        let found = self.found(class, now);
        let started = found.controller.start(now);
        if found.controller.in_flight() >= found.lately(now) {
            found.peak = (found.controller.in_flight(), now);
        }
        Ok(started)
    }

    fn charge(&mut self, kind: BudgetKind, amount: f64, now: Time) {
        let accounts = self.accounts.iter_mut().filter(|account| account.kind == kind);
        accounts.for_each(|account| account.charge(amount, now));
    }

    /// A request ended.
    pub fn end(&mut self, class: usize, started: Started, outcome: Outcome, hint: Hint, now: Time) {
        self.in_flight -= 1;
        self.charge(
            BudgetKind::ExecutionSeconds,
            now.saturating_sub(started.at).as_secs_f64(),
            now,
        );
        self.heed(hint, now);
        let found = self.found(class, now);
        match outcome {
            Outcome::Succeeded => {
                found.controller.succeeded(started, now);
                if found.learned.accepted(started.at) {
                    found.controller.restore(now);
                }
            }
            Outcome::Failed => found.controller.ended(started, true, now),
            Outcome::Throttled { retry_after } => {
                let rejection = Rejection { retry_after, timed_out: false };
                self.rejected(class, started, rejection, now);
            }
            Outcome::TimedOut => {
                let rejection = Rejection { retry_after: None, timed_out: true };
                self.rejected(class, started, rejection, now);
            }
        }
    }

    fn rejected(&mut self, class: usize, started: Started, rejection: Rejection, now: Time) {
        self.told(now.saturating_add(rejection.retry_after.unwrap_or_default()));
        let cause = self.class(class, now).rejected(started, rejection, now);
        match cause.filter(|_| !rejection.timed_out) {
            Some(Cause::PerSecond { most }) => {
                if let Some(declared) = &mut self.bucket {
                    declared.confirmed(most);
                }
            }
            // With others at work, it may be they who leave nothing.
            Some(Cause::Unknown) if self.among == 1 => {
                self.found(class, now).learned.rejected(started.trial, now);
            }
            Some(Cause::Unknown | Cause::InFlight { .. }) | None => {}
        }
    }

    /// A request was given up before it ended: nobody knows how it would have.
    pub fn abandon(&mut self, class: usize, started: Started, now: Time) {
        self.in_flight -= 1;
        self.class(class, now).ended(started, false, now);
    }

    /// Takes one of so many equal parts of what was declared, hinted or found. What is found from here
    /// on is found with the others at work.
    pub fn share(&mut self, among: u32, now: Time) {
        let among = among.max(1);
        if among == self.among {
            return;
        }
        let (before, after) = (f64::from(self.among), f64::from(among));
        for class in self.classes.values_mut() {
            class.controller.share(self.among, among, now);
        }
        self.among = among;
        self.accounts.iter_mut().for_each(|account| account.limit *= before / after);
        if let Some(bucket) = &mut self.bucket {
            bucket.share(before / after);
        }
    }

    /// Takes in what the service says. What is in flight is not yet part of what it says is left.
    fn heed(&mut self, hint: Hint, now: Time) {
        if let Some(parallelism) = hint.parallelism {
            self.hint = Some(parallelism.max(self.options.min_parallelism));
        }
        if let Some(Remaining { requests, reset }) = hint.remaining {
            let requests = requests.saturating_sub(u64::from(self.in_flight));
            self.quota = Some(Quota { requests, until: now.saturating_add(reset) });
        }
    }

    /// Learns all of a class again.
    pub fn reset(&mut self, class: usize, now: Time) {
        self.class(class, now).reset(Reason::Reset, now);
    }

    pub fn statistics(&mut self, class: usize, class_name: &str, now: Time) -> Statistics {
        let binding = self.room(class, now).err().map_or(Binding::Nothing, |wait| wait.binding);
        let found = self.class(class, now).rate();
        let declared = self.bucket.as_ref().map(Bucket::per_second);
        let mut statistics = Statistics {
            connection_name: self.name.clone(),
            class: class_name.to_owned(),
            binding,
            rate: found.into_iter().chain(declared).reduce(f64::min),
            ..Statistics::default()
        };
        let ceiling = self.ceiling().0;
        self.class(class, now).describe(&mut statistics, now);
        statistics.limit = statistics.current_parallelism.min(ceiling);
        statistics
    }

    pub fn remembered(&mut self, class: usize, class_name: &str, now: Time) -> Remembered {
        let retry_after = self.blocked_until.saturating_sub(now);
        let among = self.among;
        let (level, throttled) = self.class(class, now).remembered(among);
        let (connection, class) = (self.name.clone(), class_name.to_owned());
        Remembered { connection, class, level, throttled, retry_after, at: now }
    }

    /// The service wants to be left alone until then.
    pub fn told(&mut self, until: Time) {
        self.blocked_until = self.blocked_until.max(until);
    }

    /// Sends nothing before this time.
    pub fn hold(&mut self, until: Time) {
        self.held_until = self.held_until.max(until);
    }

    /// Until when the service wants to be left alone.
    pub fn blocked_until(&self) -> Time {
        self.blocked_until
    }

    pub fn recall(&mut self, class: usize, remembered: &Remembered, now: Time) {
        self.class(class, now).recall(remembered, now);
    }
}
