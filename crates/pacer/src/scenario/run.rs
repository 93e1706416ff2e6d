//! Running a scenario: events in the order of simulated time.

use super::{
    Scenario,
    client::{Client, Ticket},
    events::{Attempt, Attempts, Event, Events},
    file::Change,
    policies::AnyPolicy,
    regain::Regain,
    report::{Gauge, Report, jain},
    service::{Reply, Service},
    trace::Trace,
};
use crate::{Hint, Outcome, Time};
use std::time::Duration;

/// The windows of Jain's index.
const FAIRNESS_WINDOW: Duration = Duration::from_secs(10);
/// A scenario that has not ended by then never will.
const LONGEST: Duration = Duration::from_secs(1_000_000);

/// When a run is stopped that has not ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Patience {
    /// At this simulated time.
    pub time: Duration,
    /// After so many requests were sent.
    pub attempts: u64,
    /// After so many points in time at which something happened.
    pub steps: u64,
}

impl Default for Patience {
    fn default() -> Self {
        Self { time: LONGEST, attempts: u64::MAX, steps: u64::MAX }
    }
}

impl Scenario {
    /// Carries it out. The same scenario always gives the same report.
    pub fn run(&self) -> Report {
        self.run_as(AnyPolicy::Pacer(self.pacer.policy), Patience::default())
    }

    /// Carries it out with any policy, as far as patience reaches. With fewer successes than the scenario
    /// has requests, it was stopped.
    pub fn run_as(&self, policy: AnyPolicy, patience: Patience) -> Report {
        World::new(self, policy).run(patience).report()
    }

    /// Carries it out with any policy, and keeps what happened over time.
    pub fn trace_as(&self, policy: AnyPolicy) -> (Report, Trace) {
        let mut world = World::new(self, policy);
        world.trace = Some(Trace::new(self));
        let mut world = world.run(Patience::default());
        let trace = world.trace.take().expect("it was put there");
        (world.report(), trace)
    }
}

struct World<'a> {
    scenario: &'a Scenario,
    policy: AnyPolicy,
    now: Time,
    events: Events,
    /// The next time at which time itself may let a request start.
    wakes: Option<Time>,
    /// One per connection: each credential has limits of its own.
    services: Vec<Service>,
    clients: Vec<Client>,
    attempts: Attempts,
    /// Each consumer of each client, for each class.
    starters: Vec<(usize, usize)>,
    /// Those of them whose turn is still to come: kept to spare the allocation.
    turns: Vec<(usize, usize)>,
    /// By operation class.
    waiting: Vec<u64>,
    arrived: u64,
    /// Requests in flight that the service did not refuse.
    useful: usize,
    regain: Option<Regain>,
    trace: Option<Trace>,
    in_flight: Gauge,
    limit: Gauge,
    rtt: Gauge,
    window: Vec<u64>,
    report: Report,
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario, policy: AnyPolicy) -> Self {
        let service = |n| Service::new(scenario.service.clone(), scenario.seed ^ (n as u64) << 32);
        let mut world = Self {
            now: Time::ZERO,
            events: Events::default(),
            wakes: None,
            services: (0..scenario.connections).map(service).collect(),
            clients: (0..scenario.pacers).map(|_| Client::new(scenario, policy)).collect(),
            attempts: Attempts::default(),
            starters: starters(scenario),
            turns: Vec::new(),
            waiting: vec![0; scenario.classes.len()],
            arrived: 0,
            useful: 0,
            regain: Regain::new(scenario),
            trace: None,
            in_flight: Gauge::default(),
            limit: Gauge::default(),
            rtt: Gauge::default(),
            window: vec![0; scenario.pacers],
            report: Report { ideal: scenario.ideal(), ..Report::default() },
            scenario,
            policy,
        };
        for (index, Change { at, .. }) in scenario.changes.iter().enumerate() {
            world.events.plan(*at, Event::Change(index));
        }
        for at in &scenario.restarts {
            world.events.plan(Duration::from_secs_f64(*at), Event::Restart);
        }
        world.events.plan(Time::ZERO, Event::Arrival);
        world
    }

    fn run(mut self, patience: Patience) -> Self {
        let mut steps = 0;
        while self.report.successes < self.scenario.requests
            && self.now < patience.time
            && self.report.attempts < patience.attempts
            && steps < patience.steps
        {
            self.step();
            steps += 1;
        }
        self
    }

    /// Lets all happen that happens at the next point in time, then lets requests start.
    fn step(&mut self) {
        let Some(at) = self.events.next_time() else {
            self.now = LONGEST;
            return;
        };
        self.pass(at);
        while let Some(event) = self.events.pop_at(at) {
            self.happen(event);
        }
        self.start_requests();
    }

    /// Lets time pass.
    fn pass(&mut self, to: Time) {
        let limit: u32 = self.clients.iter().map(|client| client.limit(self.now)).sum();
        self.limit.over(f64::from(limit), to - self.now);
        self.in_flight.over(self.attempts.len() as f64, to - self.now);
        if let Some(regain) = &mut self.regain {
            let none_waits = self.waiting.iter().all(|waiting| *waiting == 0);
            regain.pass(self.now, to, self.useful, none_waits);
        }
        if let Some(trace) = &mut self.trace {
            trace.pass(self.now, to, f64::from(limit), self.attempts.len() as f64);
        }
        let window = |time: Time| time.as_nanos() / FAIRNESS_WINDOW.as_nanos();
        for _ in window(self.now)..window(to) {
            if self.clients.len() > 1 {
                self.report.jain.push(jain(&self.window));
            }
            self.window.fill(0);
        }
        self.now = to;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrival => self.arrival(),
            Event::Change(index) => {
                let change = &self.scenario.changes[index];
                self.services.iter_mut().for_each(|service| change.apply(&mut service.spec));
            }
            Event::Restart => {
                let (scenario, policy, now) = (self.scenario, self.policy, self.now);
                self.clients.iter_mut().for_each(|client| client.restart(scenario, policy, now));
            }
            Event::Reach { attempt } => self.reach(attempt),
            Event::Leave { attempt, service, reaction, answered } => {
                self.services[service as usize].leave(reaction, self.now);
                let latency = self.scenario.service.latency;
                if answered && latency.is_zero() {
                    self.answer(attempt, reaction.answer);
                } else if answered {
                    self.events.plan(self.now + latency, Event::Answer { attempt, reaction });
                }
            }
            Event::Answer { attempt, reaction } => self.answer(attempt, reaction.answer),
            Event::TimeOut { attempt } => {
                if let Some(attempt) = self.attempts.remove(attempt) {
                    let Attempt { client, ticket, class, .. } = attempt;
                    self.useful -= usize::from(!attempt.refused);
                    self.report.timeouts += 1;
                    self.waiting[class] += 1;
                    let (outcome, hint) = (Outcome::TimedOut, Hint::default());
                    self.clients[client].end(ticket, outcome, hint, self.now);
                }
            }
            Event::Freed { client, class, service } => {
                self.clients[client].freed(class, service as usize);
            }
            Event::Wake => self.wakes = None,
        }
    }

    fn arrival(&mut self) {
        let all = self.scenario.requests - self.arrived;
        let arriving = if self.scenario.interval.is_zero() { all } else { 1 };
        for request in self.arrived..self.arrived + arriving {
            let classes = self.waiting.len() as u64;
            self.waiting[(request % classes) as usize] += 1;
        }
        self.arrived += arriving;
        if self.arrived < self.scenario.requests {
            self.events.plan(self.now + self.scenario.interval, Event::Arrival);
        }
    }

    fn answer(&mut self, attempt: u64, answer: Reply) {
        let Some(attempt) = self.attempts.remove(attempt) else {
            return; // given up before
        };
        self.useful -= usize::from(!attempt.refused);
        let Attempt { client, class, ticket, sent, .. } = attempt;
        self.rtt.add((self.now - sent).as_secs_f64(), 1.0);
        let service = ticket.connection();
        let parallelism = self.services[service].spec.hint.parallelism;
        let hint = Hint { parallelism, remaining: None };
        let outcome = match answer {
            Reply::Accepted => {
                self.report.successes += 1;
                self.window[client] += 1;
                Outcome::Succeeded
            }
            Reply::Rejected { retry_after } => {
                self.report.rejects += 1;
                self.waiting[class] += 1;
                let until = self.now + retry_after.unwrap_or_default();
                let left_alone = &mut self.clients[client].left_alone[service];
                *left_alone = until.max(*left_alone);
                Outcome::Throttled { retry_after }
            }
            Reply::Never => return,
        };
        self.clients[client].end(ticket, outcome, hint, self.now);
    }

    /// Lets each consumer in turn start one request of each class, as long as any may.
    fn start_requests(&mut self) {
        let mut turns = std::mem::take(&mut self.turns);
        turns.clone_from(&self.starters);
        while !turns.is_empty() {
            turns.retain(|(client, class)| self.start_request(*client, *class));
        }
        self.turns = turns;
    }

    fn start_request(&mut self, client: usize, class: usize) -> bool {
        if self.waiting[class] == 0 {
            return false;
        }
        match self.clients[client].start(class, self.now) {
            Ok(ticket) => {
                self.send(client, class, ticket);
                true
            }
            Err(until) => {
                if let Some(until) = until {
                    self.wake(until.max(self.now + Duration::from_nanos(1)));
                }
                false
            }
        }
    }

    /// Lets requests start at a time. Whoever still waits at an earlier one says so again.
    fn wake(&mut self, at: Time) {
        if self.wakes.is_none_or(|planned| at < planned) {
            self.events.plan(at, Event::Wake);
            self.wakes = Some(at);
        }
    }

    fn send(&mut self, client: usize, class: usize, ticket: Ticket) {
        let service = ticket.connection();
        self.waiting[class] -= 1;
        self.report.attempts += 1;
        let inside = self.now < self.clients[client].left_alone[service];
        self.report.inside_retry_after += u64::from(inside);
        let sent = self.now;
        let attempt = self.attempts.add(Attempt { client, class, ticket, sent, refused: false });
        self.useful += 1;
        let latency = self.scenario.service.latency;
        if latency.is_zero() {
            self.reach(attempt);
        } else {
            self.events.plan(self.now + latency, Event::Reach { attempt });
        }
    }

    /// A request reaches its service.
    fn reach(&mut self, attempt: u64) {
        let Some(known) = self.attempts.get_mut(attempt) else {
            return; // given up before: latency is less than half of the timeout
        };
        let (client, class, service) = (known.client, known.class, known.ticket.connection());
        let given_up = known.sent + self.scenario.timeout;
        let reaction = self.services[service].arrive(self.scenario.classes[class], self.now);
        known.refused = reaction.answer != Reply::Accepted;
        self.useful -= usize::from(known.refused);
        let leaves = self.now + reaction.occupies;
        let latency = self.scenario.service.latency;
        let in_time = leaves + latency <= given_up;
        let answered = in_time && reaction.answer != Reply::Never;
        let service = service as u32;
        self.events.plan(leaves, Event::Leave { attempt, service, reaction, answered });
        if self.clients[client].foresees() {
            let at = self.now.max(leaves.saturating_sub(latency));
            self.events.plan(at, Event::Freed { client, class, service });
        }
        if !answered {
            self.events.plan(given_up, Event::TimeOut { attempt });
        }
    }

    fn report(mut self) -> Report {
        self.report.makespan = self.now.as_secs_f64();
        self.report.regained = self.regain.as_ref().and_then(Regain::seconds);
        self.report.in_flight = self.in_flight.spread();
        self.report.limit = self.limit.spread();
        self.report.rtt = self.rtt.spread();
        self.report.decisions = self.clients[0].decisions(self.now);
        self.report
    }
}

/// Each consumer of each client, for each class.
fn starters(scenario: &Scenario) -> Vec<(usize, usize)> {
    let consumers = (0..scenario.pacers).flat_map(|client| [client].repeat(scenario.consumers));
    let classes = 0..scenario.classes.len();
    consumers.flat_map(|client| classes.clone().map(move |class| (client, class))).collect()
}
