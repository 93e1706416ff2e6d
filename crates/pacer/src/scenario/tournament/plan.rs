//! What is drawn for one service.

use super::{
    draw::{Dice, rounded},
    kind::Kind,
};
use crate::{
    Budget, BudgetKind, Options,
    scenario::{Action, Change, Expect, HintSpec, LimitSpec, Scenario, ServiceBudget, ServiceSpec},
};
use std::time::Duration;

/// The most in flight that the pacer may have, on one connection.
const MAX: u32 = 200;
/// Fewer requests would show nothing, more would only take longer.
const REQUESTS: (f64, f64) = (100.0, 60_000.0);

/// The numbers that every service has.
pub(super) struct Base {
    delay: f64,
    jitter: f64,
    capacity: u32,
    /// The lowest limit of a rate.
    lowest_rate: f64,
    /// Seconds of work at the nominal speed.
    work: f64,
    connections: usize,
    latency: f64,
    /// The speed at which requests arrive, as a multiple of the nominal one; none: all at once.
    arrivals: Option<f64>,
}

impl Base {
    pub fn classic(dice: &mut Dice) -> Self {
        Self {
            delay: rounded(dice.log_uniform(0.01, 1.0), 4),
            jitter: dice.one_of(&[0.0, 0.0, 0.1, 0.3]),
            capacity: dice.log_uniform(3.0, 81.0) as u32,
            lowest_rate: 5.0,
            work: dice.uniform(20.0, 90.0),
            connections: 1,
            latency: 0.0,
            arrivals: None,
        }
    }

    pub fn wide(dice: &mut Dice) -> Self {
        let delay = rounded(dice.log_uniform(0.01, 2.0), 4);
        let jitter = if dice.chance(0.4) { 0.0 } else { rounded(dice.uniform(0.0, 0.5), 2) };
        let latency = if dice.chance(0.5) { 0.0 } else { dice.uniform(0.0, 0.2) * delay };
        let connections = if dice.chance(0.7) { 1 } else { dice.one_of(&[2, 3, 4]) };
        let arrivals = (!dice.chance(0.7)).then(|| dice.uniform(0.3, 2.0));
        Self {
            delay,
            jitter,
            capacity: dice.log_uniform(1.0, 201.0) as u32,
            lowest_rate: 1.0,
            work: dice.uniform(20.0, 90.0),
            connections,
            latency: rounded(latency, 3),
            arrivals,
        }
    }

    /// Requests per second that a connection can do with so many in the service.
    fn speed(&self, in_service: f64) -> f64 {
        in_service.min(f64::from(MAX)) / (self.delay * (1.0 + self.jitter))
    }
}

/// What makes a service one of its kind.
pub(super) struct Plan {
    concurrency: LimitSpec,
    rate: LimitSpec,
    budget: Option<ServiceBudget>,
    declared: bool,
    changes: Vec<(f64, LimitSpec)>,
    /// Requests per second and connection, nominally.
    speed: f64,
    requests: u64,
}

impl Plan {
    pub fn new(base: &Base) -> Self {
        let mut plan = Self {
            concurrency: limit(base.capacity),
            rate: LimitSpec::default(),
            budget: None,
            declared: false,
            changes: Vec::new(),
            speed: 0.0,
            requests: 0,
        };
        plan.works(base.speed(f64::from(base.capacity)), base);
        plan
    }

    /// There is work for the drawn time at this speed of each connection.
    fn works(&mut self, speed: f64, base: &Base) {
        let all = speed * base.connections as f64;
        self.speed = speed;
        self.requests = (base.work * all).clamp(REQUESTS.0, REQUESTS.1) as u64;
    }

    /// How long the work takes at the nominal speed: not the drawn time if that is too much or too little.
    fn seconds(&self, base: &Base) -> f64 {
        self.requests as f64 / (self.speed * base.connections as f64)
    }

    pub fn specialize(&mut self, kind: Kind, base: &Base, dice: &mut Dice) {
        let (capacity, seconds) = (base.capacity, self.seconds(base));
        match kind {
            Kind::Defer => {}
            Kind::Drop => self.concurrency.action = Action::Drop,
            Kind::Rate => {
                self.concurrency = LimitSpec::default();
                self.limit_rate(base, f64::from(MAX), dice);
            }
            Kind::Knee => self.concurrency = knee(capacity, dice),
            Kind::Falls => {
                let low = limit((capacity / dice.one_of(&[2, 3, 5])).max(1));
                self.changes = vec![(0.25 * seconds, low), (0.5 * seconds, limit(capacity))];
            }
            Kind::Rises => {
                self.concurrency = limit((capacity / dice.one_of(&[2, 3, 5])).max(1));
                self.changes = vec![(0.3 * seconds, limit(capacity))];
            }
            Kind::Outage => self.fails(Action::Defer, seconds, capacity, dice),
            Kind::Silence => self.fails(Action::Drop, seconds, capacity, dice),
            Kind::RateAndKnee => {
                self.concurrency = knee(capacity, dice);
                self.limit_rate(base, f64::from(capacity), dice);
            }
            Kind::LimitAndKnee => {
                let above = dice.uniform(1.0, 3.0) * f64::from(capacity);
                self.concurrency = LimitSpec { limit: Some(above as u32), ..knee(capacity, dice) };
            }
            Kind::Declared => self.budget(true, base, dice),
            Kind::Undeclared => self.budget(false, base, dice),
        }
    }

    fn limit_rate(&mut self, base: &Base, in_service: f64, dice: &mut Dice) {
        let most = dice.log_uniform(base.lowest_rate, 401.0) as u32;
        self.rate = limit(most);
        self.works(f64::from(most).min(base.speed(in_service)), base);
    }

    /// For 2 to 15 seconds, nothing is accepted.
    fn fails(&mut self, action: Action, seconds: f64, capacity: u32, dice: &mut Dice) {
        let at = dice.uniform(0.2, 0.6) * seconds;
        let until = at + dice.uniform(2.0, 15.0);
        self.changes = vec![(at, LimitSpec { action, ..limit(0) }), (until, limit(capacity))];
    }

    /// The window allows 30 to 90 % of what could be done otherwise.
    fn budget(&mut self, declared: bool, base: &Base, dice: &mut Dice) {
        let window = rounded(dice.uniform(5.0, 20.0), 3);
        let most = (dice.uniform(0.3, 0.9) * self.speed * window).floor().max(1.0);
        let retry_after = dice.chance(0.5).then(|| rounded(dice.uniform(0.05, 0.5) * window, 3));
        self.budget = Some(ServiceBudget {
            kind: BudgetKind::Requests,
            limit: most,
            window: Duration::from_secs_f64(window),
            retry_after,
        });
        self.declared = declared;
        self.works(most / window, base);
    }

    pub fn scenario(self, name: String, base: &Base, seed: u64) -> Scenario {
        let interval = base
            .arrivals
            .map_or(0.0, |times| rounded(1.0 / (times * self.speed * base.connections as f64), 4));
        let declared = self.budget.iter().filter(|_| self.declared);
        let budgets = declared.map(|budget| Budget {
            kind: budget.kind,
            limit: budget.limit,
            window: budget.window,
        });
        let pacer =
            Options { max: MAX, start: Some(1), budgets: budgets.collect(), ..Options::default() };
        let service = ServiceSpec {
            delay: Duration::from_secs_f64(base.delay),
            jitter: base.jitter,
            latency: Duration::from_secs_f64(base.latency),
            concurrency: self.concurrency,
            rate: self.rate,
            budgets: self.budget.into_iter().collect(),
            hint: HintSpec::default(),
        };
        let change = |(at, concurrency): (f64, LimitSpec)| Change {
            at: Duration::from_secs_f64(rounded(at, 5)),
            delay: None,
            jitter: None,
            concurrency: Some(concurrency),
            rate: None,
            hint: None,
        };
        Scenario {
            name,
            requests: self.requests,
            interval: Duration::from_secs_f64(interval),
            timeout: Duration::from_secs_f64((8.0 * base.delay).max(1.0)),
            seed,
            pacers: 1,
            connections: base.connections,
            consumers: 1,
            classes: vec![1.0],
            restarts: Vec::new(),
            service,
            changes: self.changes.into_iter().map(change).collect(),
            pacer,
            expect: Expect::default(),
        }
    }
}

fn limit(most: u32) -> LimitSpec {
    LimitSpec { limit: Some(most), ..LimitSpec::default() }
}

/// At twice the knee, the delay is 1.5 to 8 times what it is up to the knee.
fn knee(at: u32, dice: &mut Dice) -> LimitSpec {
    let at_twice = dice.uniform(1.5, 8.0);
    let knee_exp = rounded(at_twice.powf(1.0 / f64::from(at)), 7);
    LimitSpec { knee_start: at, knee_exp, ..LimitSpec::default() }
}
