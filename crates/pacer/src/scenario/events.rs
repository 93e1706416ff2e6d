//! What happens when, and which requests are under way.

use super::{client::Ticket, service::Reaction};
use crate::Time;
use std::{
    cmp::{Ordering, Reverse},
    collections::{BinaryHeap, VecDeque},
};

/// What happens at some time. At the same time, in the order in which it was planned.
pub(super) enum Event {
    /// A request arrives at one of the pacers.
    Arrival,
    /// The service is another one from now on.
    Change(usize),
    /// The pacers' processes end, and new ones begin.
    Restart,
    /// A request reaches the service.
    Reach { attempt: u64 },
    /// A request leaves the service.
    Leave { attempt: u64, service: u32, reaction: Reaction, answered: bool },
    /// A client learns how its request ended.
    Answer { attempt: u64, reaction: Reaction },
    /// A client gives its request up.
    TimeOut { attempt: u64 },
    /// What a client starts now finds one place more in the service.
    Freed { client: usize, class: usize, service: u32 },
    /// Time itself may let a request start.
    Wake,
}

/// Events by time.
#[derive(Default)]
pub(super) struct Events {
    planned: BinaryHeap<Reverse<Planned>>,
    next: u64,
}

struct Planned {
    at: Time,
    number: u64,
    event: Event,
}

impl Events {
    pub fn plan(&mut self, at: Time, event: Event) {
        self.planned.push(Reverse(Planned { at, number: self.next, event }));
        self.next += 1;
    }

    /// When the next event is.
    pub fn next_time(&self) -> Option<Time> {
        self.planned.peek().map(|Reverse(planned)| planned.at)
    }

    /// The next event, if it is at this time.
    pub fn pop_at(&mut self, at: Time) -> Option<Event> {
        if self.next_time() != Some(at) {
            return None;
        }
        self.planned.pop().map(|Reverse(planned)| planned.event)
    }
}

impl Ord for Planned {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl PartialOrd for Planned {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Planned {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Planned {}

/// A request that a client has sent and that has not ended for the client.
pub(super) struct Attempt {
    pub client: usize,
    pub class: usize,
    pub ticket: Ticket,
    pub sent: Time,
    /// Whether the service rejected it or will never answer.
    pub refused: bool,
}

/// Attempts by number. They are numbered in turn and end in about that order.
#[derive(Default)]
pub(super) struct Attempts {
    first: u64,
    known: VecDeque<Option<Attempt>>,
    len: usize,
}

impl Attempts {
    /// Adds an attempt and returns its number.
    pub fn add(&mut self, attempt: Attempt) -> u64 {
        self.known.push_back(Some(attempt));
        self.len += 1;
        self.first + self.known.len() as u64 - 1
    }

    pub fn get_mut(&mut self, number: u64) -> Option<&mut Attempt> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.known.get_mut(index)?.as_mut()
    }

    pub fn remove(&mut self, number: u64) -> Option<Attempt> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let attempt = self.known.get_mut(index)?.take()?;
        self.len -= 1;
        while matches!(self.known.front(), Some(None)) {
            self.known.pop_front();
            self.first += 1;
        }
        Some(attempt)
    }

    pub fn len(&self) -> usize {
        self.len
    }
}
