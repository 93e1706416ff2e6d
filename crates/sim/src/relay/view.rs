//! A history, by what it is about: what the checkers look at.
//!
//! The place of an event in the history is its time: of two events at the same instant, one came first.

use super::{
    history::{Entry, Event},
    scenario::Scenario,
};
use std::collections::BTreeMap;
use tidegate_core::{
    Fence, Position,
    outbox::{Aside, Lane},
    sink::Outcome,
};

/// The place of an event in the history.
pub type Place = usize;

pub struct View<'a> {
    pub scenario: &'a Scenario,
    pub history: &'a [Entry],
    /// By id.
    pub messages: BTreeMap<Position, Known>,
    /// By the place of their first event.
    pub requests: BTreeMap<Place, Request>,
    /// By lane, in order.
    tenures: BTreeMap<Lane, Vec<Tenure>>,
    /// By life, when it froze.
    froze: BTreeMap<usize, Vec<Place>>,
}

/// What is known about a message.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Its place in the scenario.
    pub message: usize,
    pub lane: Option<Lane>,
    /// When it was read, and in which life.
    pub claimed: Vec<(Place, usize)>,
    pub accepted: Vec<Acceptance>,
    /// What was written about it.
    pub aside: Vec<(Place, Aside)>,
    /// When it was made due again.
    pub retried: Vec<Place>,
    pub dropped: Option<Place>,
}

/// A sink took a message in.
#[derive(Clone, Copy, Debug)]
pub struct Acceptance {
    pub at: Place,
    /// Which of those that were taken in together.
    nth: usize,
    pub life: usize,
    pub sink: usize,
    pub request: Place,
}

impl Acceptance {
    pub fn is_before(&self, other: &Self) -> bool {
        (self.at, self.nth) < (other.at, other.nth)
    }
}

/// A request to a sink.
#[derive(Clone, Debug)]
pub struct Request {
    pub ids: Vec<Position>,
    pub sink: usize,
    /// What came back to the relay.
    pub answer: Option<(Place, Outcome)>,
}

/// A relay has a lane, from its gain to its giving back, or to somebody else's gain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tenure {
    pub life: usize,
    pub fence: Fence,
    pub from: Place,
    pub given_back: Option<Place>,
}

impl<'a> View<'a> {
    pub fn new(scenario: &'a Scenario, history: &'a [Entry]) -> Self {
        let mut view = Self {
            scenario,
            history,
            messages: BTreeMap::new(),
            requests: BTreeMap::new(),
            tenures: BTreeMap::new(),
            froze: BTreeMap::new(),
        };
        for (place, entry) in history.iter().enumerate() {
            view.note(place, entry);
        }
        view
    }

    fn message(&mut self, id: Position) -> &mut Known {
        self.messages.entry(id).or_default()
    }

    fn note(&mut self, at: Place, entry: &Entry) {
        let life = entry.life;
        match &entry.event {
            Event::Published { id, message } => self.message(*id).message = *message,
            Event::Gained(lease) => {
                let tenure = Tenure { life, fence: lease.fence, from: at, given_back: None };
                self.tenures.entry(lease.lane).or_default().push(tenure);
            }
            Event::GivenBack(lease) => {
                let last = self.tenures.entry(lease.lane).or_default().last_mut();
                let last = last.filter(|it| it.fence == lease.fence && it.given_back.is_none());
                last.into_iter().for_each(|tenure| tenure.given_back = Some(at));
            }
            Event::Claimed(messages) => {
                for (id, lane) in messages {
                    let known = self.message(*id);
                    known.lane = Some(*lane);
                    known.claimed.push((at, life));
                }
            }
            Event::Settled { aside, .. } => {
                for (id, aside) in aside {
                    self.message(*id).aside.push((at, aside.clone()));
                }
            }
            Event::Asked { sink, ids } => {
                let request = Request { ids: ids.clone(), sink: *sink, answer: None };
                self.requests.insert(at, request);
            }
            Event::Accepted { request, ids, .. } => {
                let request = *request as Place;
                let Some(sink) = self.requests.get(&request).map(|it| it.sink) else { return };
                for (nth, id) in ids.iter().enumerate() {
                    let accepted = Acceptance { at, nth, life, sink, request };
                    self.message(*id).accepted.push(accepted);
                }
            }
            Event::Answered { request, outcome } => {
                if let Some(request) = self.requests.get_mut(&(*request as Place)) {
                    request.answer = Some((at, outcome.clone()));
                }
            }
            Event::Froze => self.froze.entry(life).or_default().push(at),
            Event::Retried(ids) => ids.iter().for_each(|id| self.message(*id).retried.push(at)),
            Event::Dropped(ids) => ids.iter().for_each(|id| self.message(*id).dropped = Some(at)),
            _ => {}
        }
    }

    /// Who has a lane at a time.
    pub fn tenure(&self, lane: Lane, at: Place) -> Option<Tenure> {
        let last = self.tenures.get(&lane)?.iter().rev().find(|tenure| tenure.from <= at)?;
        last.given_back.is_none_or(|back| back > at).then_some(*last)
    }

    /// Whether a lane went to somebody between two times although it had not been given back.
    pub fn was_lost(&self, lane: Lane, from: Place, to: Place) -> bool {
        let tenures = self.tenures.get(&lane).map_or(&[][..], Vec::as_slice);
        let taken = tenures.windows(2).filter(|two| two[0].given_back.is_none());
        taken.map(|two| two[1].from).any(|gain| from < gain && gain < to)
    }

    /// The lanes that a life has at the end of the history.
    pub fn kept(&self, life: usize) -> usize {
        let last = |tenures: &Vec<Tenure>| tenures.last().copied();
        let held = |it: &Tenure| it.life == life && it.given_back.is_none();
        self.tenures.values().filter_map(last).filter(held).count()
    }

    pub fn froze(&self, life: usize, from: Place, to: Place) -> bool {
        self.froze.get(&life).is_some_and(|all| all.iter().any(|at| from < *at && *at < to))
    }

    /// By which right a message was taken in. If its relay has read it twice, it may have sent what it read
    /// first.
    pub fn right(&self, known: &Known, accepted: &Acceptance) -> Right {
        let Some(lane) = known.lane else { return Right::Valid };
        let claims = known.claimed.iter();
        let claims = claims.filter(|(at, life)| *at < accepted.request && *life == accepted.life);
        let rights = claims.map(|(claim, life)| {
            let read = self.tenure(lane, *claim).filter(|tenure| tenure.life == *life);
            if read.is_some() && read == self.tenure(lane, accepted.at) {
                Right::Valid
            } else if read.is_some() && read == self.tenure(lane, accepted.request) {
                Right::InFlight
            } else if self.froze(*life, *claim, accepted.request) {
                Right::Frozen
            } else {
                Right::Gone
            }
        });
        rights.max().unwrap_or(Right::Valid)
    }

    /// For messages to people.
    pub fn time(&self, at: Place) -> f64 {
        self.history[at].at.as_secs_f64()
    }

    /// The topic of a message.
    pub fn topic(&self, known: &Known) -> &str {
        &self.scenario.topics[self.scenario.messages[known.message].topic].name
    }
}

/// By which right a message was taken in. A sink cannot be fenced: what was on its way when a lane was
/// lost, or what a frozen relay had in its hands, arrives whoever has the lane by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    /// The lane is still that relay's.
    Valid,
    /// It had been lost before the request was sent, and the relay could know.
    Gone,
    /// It was when the request was sent.
    InFlight,
    /// It was lost while the relay was frozen.
    Frozen,
}
