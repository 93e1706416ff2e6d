//! Who sends: a process with the pacer, or with another policy in its place.

use super::{
    Scenario,
    policies::{AnyPolicy, Level, Sample},
};
use crate::{Decision, Gate, Hint, Options, Outcome, Pacer, Permit, Time};

/// A process with its policy.
pub(super) struct Client {
    sender: Sender,
    /// For each connection: until when the service wants to be left alone.
    pub left_alone: Vec<Time>,
}

enum Sender {
    /// One gate per operation class.
    Pacer(Vec<Gate>),
    /// One line per operation class and connection.
    Other(Vec<Vec<Line>>),
}

/// What another policy has in flight on one connection.
struct Line {
    level: Box<dyn Level>,
    in_flight: u32,
}

/// The right to one request.
pub(super) enum Ticket {
    Permit(Permit),
    Place { connection: usize, class: usize, in_flight: u32, sent: Time },
}

impl Ticket {
    pub fn connection(&self) -> usize {
        match self {
            Ticket::Permit(permit) => permit.connection(),
            Ticket::Place { connection, .. } => *connection,
        }
    }
}

impl Client {
    pub fn new(scenario: &Scenario, policy: AnyPolicy) -> Self {
        let sender = match policy {
            AnyPolicy::Pacer(policy) => {
                let options = Options { policy, ..scenario.pacer.clone() };
                Sender::Pacer(gates(scenario, options))
            }
            _ => {
                let level = || policy.level(scenario).expect("all but the pacer's have levels");
                let line = |_| Line { level: level(), in_flight: 0 };
                let lines = |_| (0..scenario.connections).map(line).collect();
                Sender::Other((0..scenario.classes.len()).map(lines).collect())
            }
        };
        Self { sender, left_alone: vec![Time::ZERO; scenario.connections] }
    }

    /// How much may be in flight.
    pub fn limit(&self, now: Time) -> u32 {
        match &self.sender {
            Sender::Pacer(gates) => gates.iter().map(|gate| gate.limit(now)).sum(),
            Sender::Other(classes) => {
                let lines = classes.iter().flat_map(|lines| lines.iter().zip(&self.left_alone));
                let open = lines.filter(|(_, until)| now >= **until);
                open.map(|(line, _)| line.level.level()).sum()
            }
        }
    }

    /// Starts a request; if none may start, says when time itself may allow it.
    pub fn start(&mut self, class: usize, now: Time) -> Result<Ticket, Option<Time>> {
        match &mut self.sender {
            Sender::Pacer(gates) => {
                gates[class].try_start(now).map(Ticket::Permit).map_err(|wait| wait.until)
            }
            Sender::Other(classes) => {
                let (connection, line) =
                    with_most_room(&mut classes[class], &self.left_alone, now)?;
                line.in_flight += 1;
                line.level.started(line.in_flight, now);
                Ok(Ticket::Place { connection, class, in_flight: line.in_flight, sent: now })
            }
        }
    }

    /// A request ended.
    pub fn end(&mut self, ticket: Ticket, outcome: Outcome, hint: Hint, now: Time) {
        match (ticket, &mut self.sender) {
            (Ticket::Permit(permit), _) => permit.end(outcome, hint, now),
            (Ticket::Place { connection, class, in_flight, sent }, Sender::Other(classes)) => {
                let line = &mut classes[class][connection];
                line.in_flight -= 1;
                line.level.ended(&Sample { sent, now, in_flight, outcome });
            }
            (Ticket::Place { .. }, Sender::Pacer(_)) => {}
        }
    }

    /// Whether it wants to be told of places in the service that become free.
    pub fn foresees(&self) -> bool {
        match &self.sender {
            Sender::Pacer(_) => false,
            Sender::Other(classes) => classes[0][0].level.foresees(),
        }
    }

    /// What starts now finds one place more in the service.
    pub fn freed(&mut self, class: usize, connection: usize) {
        if let Sender::Other(classes) = &mut self.sender {
            classes[class][connection].level.freed();
        }
    }

    /// The process ends, and a new one begins. Only the pacer remembers anything.
    pub fn restart(&mut self, scenario: &Scenario, policy: AnyPolicy, now: Time) {
        let mut new = Client::new(scenario, policy);
        match (&mut self.sender, &mut new.sender) {
            (Sender::Pacer(old), Sender::Pacer(new)) => {
                old.iter().zip(new).for_each(|(old, new)| new.recall(&old.remembered(now), now));
            }
            (Sender::Other(old), Sender::Other(new)) => {
                let lines = old.iter().flatten().zip(new.iter_mut().flatten());
                lines.for_each(|(old, new)| new.in_flight = old.in_flight);
            }
            _ => {}
        }
        self.sender = new.sender;
    }

    /// What the pacer decided on its first connection.
    pub fn decisions(&self, now: Time) -> Vec<Decision> {
        match &self.sender {
            Sender::Pacer(gates) => gates[0].statistics(now).swap_remove(0).decisions,
            Sender::Other(_) => Vec::new(),
        }
    }
}

fn gates(scenario: &Scenario, options: Options) -> Vec<Gate> {
    let names = (0..scenario.connections).map(|n| format!("connection {n}"));
    let pacer = Pacer::new(options, names);
    let pacer = pacer.expect("options are checked when a scenario is read");
    (0..scenario.classes.len()).map(|class| pacer.gate(&format!("class {class}"))).collect()
}

/// The connection with the most room that does not want to be left alone.
fn with_most_room<'a>(
    lines: &'a mut [Line],
    left_alone: &[Time],
    now: Time,
) -> Result<(usize, &'a mut Line), Option<Time>> {
    let mut best: Option<(u32, usize)> = None;
    let mut soonest: Option<Time> = None;
    for (index, (line, until)) in lines.iter_mut().zip(left_alone).enumerate() {
        let closed = (now < *until).then_some(Some(*until));
        let allowed = closed.map_or_else(|| line.level.allows(line.in_flight, now), Err);
        match allowed {
            Ok(()) => {
                let room = line.level.level().saturating_sub(line.in_flight);
                if best.is_none_or(|(most, _)| room > most) {
                    best = Some((room, index));
                }
            }
            Err(until) => soonest = soonest.into_iter().chain(until).min(),
        }
    }
    let Some((_, index)) = best else { return Err(soonest) };
    Ok((index, &mut lines[index]))
}
