//! Running a scenario: events in the order of simulated time.

use super::{
    Scenario,
    file::Change,
    report::{Gauge, Report, jain},
    service::{Reaction, Reply, Service},
};
use crate::{Gate, Hint, Outcome, Pacer, Permit, Time};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    time::Duration,
};

/// The windows of Jain's index.
const FAIRNESS_WINDOW: Duration = Duration::from_secs(10);
/// A scenario that has not ended by then never will.
const LONGEST: Duration = Duration::from_secs(1_000_000);

impl Scenario {
    /// Carries it out. The same scenario always gives the same report.
    pub fn run(&self) -> Report {
        let mut world = World::new(self);
        while world.report.successes < self.requests && world.now < LONGEST {
            world.step();
        }
        world.report()
    }
}

/// What happens at some time. At the same time, in the order in which it was planned.
enum Event {
    /// A request arrives at one of the pacers.
    Arrival,
    /// The service is another one from now on.
    Change(usize),
    /// The pacers' processes end, and new ones begin.
    Restart,
    /// A request leaves the service.
    Leave { service: usize, reaction: Reaction },
    /// A client learns how its request ended.
    Answer { attempt: u64, answer: Reply },
    /// A client gives its request up.
    TimeOut { attempt: u64 },
    /// Time itself may let a request start.
    Wake,
}

struct Attempt {
    client: usize,
    class: usize,
    permit: Permit,
    sent: Time,
}

/// A process with its pacer.
struct Client {
    /// One per operation class.
    gates: Vec<Gate>,
    /// For each connection: until when the service wants to be left alone.
    left_alone: Vec<Time>,
}

impl Client {
    fn new(scenario: &Scenario) -> Self {
        Self { gates: gates(scenario), left_alone: vec![Time::ZERO; scenario.connections] }
    }

    fn limit(&self, now: Time) -> u32 {
        self.gates.iter().map(|gate| gate.limit(now)).sum()
    }

    fn restart(&mut self, scenario: &Scenario, now: Time) {
        let old = std::mem::replace(&mut self.gates, gates(scenario));
        for (old, new) in old.iter().zip(&self.gates) {
            new.recall(&old.remembered(now), now);
        }
    }
}

fn gates(scenario: &Scenario) -> Vec<Gate> {
    let names = (0..scenario.connections).map(|n| format!("connection {n}"));
    let pacer = Pacer::new(scenario.pacer.clone(), names);
    let pacer = pacer.expect("options are checked when a scenario is read");
    (0..scenario.classes.len()).map(|class| pacer.gate(&format!("class {class}"))).collect()
}

struct World<'a> {
    scenario: &'a Scenario,
    now: Time,
    events: BinaryHeap<Reverse<(Time, u64)>>,
    planned: BTreeMap<u64, Event>,
    next: u64,
    /// One per connection: each credential has limits of its own.
    services: Vec<Service>,
    clients: Vec<Client>,
    attempts: BTreeMap<u64, Attempt>,
    /// By operation class.
    waiting: Vec<u64>,
    arrived: u64,
    in_flight: Gauge,
    limit: Gauge,
    rtt: Gauge,
    window: Vec<u64>,
    report: Report,
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        let service = |n| Service::new(scenario.service.clone(), scenario.seed ^ (n as u64) << 32);
        let mut world = Self {
            now: Time::ZERO,
            events: BinaryHeap::new(),
            planned: BTreeMap::new(),
            next: 0,
            services: (0..scenario.connections).map(service).collect(),
            clients: (0..scenario.pacers).map(|_| Client::new(scenario)).collect(),
            attempts: BTreeMap::new(),
            waiting: vec![0; scenario.classes.len()],
            arrived: 0,
            in_flight: Gauge::default(),
            limit: Gauge::default(),
            rtt: Gauge::default(),
            window: vec![0; scenario.pacers],
            report: Report { ideal: scenario.ideal(), ..Report::default() },
            scenario,
        };
        for (index, Change { at, .. }) in scenario.changes.iter().enumerate() {
            world.plan(*at, Event::Change(index));
        }
        for at in &scenario.restarts {
            world.plan(Duration::from_secs_f64(*at), Event::Restart);
        }
        world.plan(Time::ZERO, Event::Arrival);
        world
    }

    fn plan(&mut self, at: Time, event: Event) {
        self.events.push(Reverse((at, self.next)));
        self.planned.insert(self.next, event);
        self.next += 1;
    }

    /// Lets all happen that happens at the next point in time, then lets requests start.
    fn step(&mut self) {
        let Some(&Reverse((at, _))) = self.events.peek() else {
            self.now = LONGEST;
            return;
        };
        self.pass(at);
        while let Some(&Reverse((next, number))) = self.events.peek()
            && next == at
        {
            self.events.pop();
            if let Some(event) = self.planned.remove(&number) {
                self.happen(event);
            }
        }
        self.start_requests();
    }

    /// Lets time pass.
    fn pass(&mut self, to: Time) {
        let limit: u32 = self.clients.iter().map(|client| client.limit(self.now)).sum();
        self.limit.over(f64::from(limit), to - self.now);
        self.in_flight.over(self.attempts.len() as f64, to - self.now);
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
                let (scenario, now) = (self.scenario, self.now);
                self.clients.iter_mut().for_each(|client| client.restart(scenario, now));
            }
            Event::Leave { service, reaction } => self.services[service].leave(reaction, self.now),
            Event::Answer { attempt, answer } => self.answer(attempt, answer),
            Event::TimeOut { attempt } => {
                if let Some(Attempt { permit, class, .. }) = self.attempts.remove(&attempt) {
                    self.report.timeouts += 1;
                    self.waiting[class] += 1;
                    permit.end(Outcome::TimedOut, Hint::default(), self.now);
                }
            }
            Event::Wake => {}
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
            self.plan(self.now + self.scenario.interval, Event::Arrival);
        }
    }

    fn answer(&mut self, attempt: u64, answer: Reply) {
        let Some(Attempt { client, class, permit, sent }) = self.attempts.remove(&attempt) else {
            return; // given up before
        };
        self.rtt.add((self.now - sent).as_secs_f64(), 1.0);
        let service = permit.connection();
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
        permit.end(outcome, hint, self.now);
    }

    /// Lets each consumer in turn start one request of each class, as long as any may.
    fn start_requests(&mut self) {
        let mut starters: Vec<(usize, usize)> = Vec::new();
        for client in (0..self.clients.len()).flat_map(|c| [c].repeat(self.scenario.consumers)) {
            starters.extend((0..self.waiting.len()).map(|class| (client, class)));
        }
        while !starters.is_empty() {
            starters.retain(|(client, class)| self.start_request(*client, *class));
        }
    }

    fn start_request(&mut self, client: usize, class: usize) -> bool {
        if self.waiting[class] == 0 {
            return false;
        }
        match self.clients[client].gates[class].try_start(self.now) {
            Ok(permit) => {
                self.send(client, class, permit);
                true
            }
            Err(wait) => {
                if let Some(until) = wait.until {
                    self.plan(until.max(self.now + Duration::from_nanos(1)), Event::Wake);
                }
                false
            }
        }
    }

    fn send(&mut self, client: usize, class: usize, permit: Permit) {
        let service = permit.connection();
        self.waiting[class] -= 1;
        self.report.attempts += 1;
        let inside = self.now < self.clients[client].left_alone[service];
        self.report.inside_retry_after += u64::from(inside);
        let reaction = self.services[service].arrive(self.scenario.classes[class], self.now);
        let attempt = self.report.attempts;
        self.attempts.insert(attempt, Attempt { client, class, permit, sent: self.now });
        let leaves = self.now + reaction.occupies;
        self.plan(leaves, Event::Leave { service, reaction });
        if reaction.answer != Reply::Never && reaction.occupies <= self.scenario.timeout {
            self.plan(leaves, Event::Answer { attempt, answer: reaction.answer });
        } else {
            self.plan(self.now + self.scenario.timeout, Event::TimeOut { attempt });
        }
    }

    fn report(mut self) -> Report {
        self.report.makespan = self.now.as_secs_f64();
        self.report.in_flight = self.in_flight.spread();
        self.report.limit = self.limit.spread();
        self.report.rtt = self.rtt.spread();
        self.report.decisions =
            self.clients[0].gates[0].statistics(self.now).swap_remove(0).decisions;
        self.report
    }
}
