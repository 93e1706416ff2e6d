//! What was published beside what arrived: pure.

use std::collections::{HashMap, HashSet};

/// A message that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub key: usize,
    /// Its place among the messages of its key.
    pub place: u64,
    /// What the outbox calls it.
    pub id: i64,
    /// The process that sent it …
    pub relay: usize,
    /// … and how many deliveries it had let fail before.
    pub failed: u64,
}

/// A process that was killed, and what was not settled when it was dead.
pub struct Death {
    pub relay: usize,
    pub unsettled: HashSet<i64>,
}

/// What became of the messages.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Published, and never arrived.
    pub lost: u64,
    /// Arrived, and never published.
    pub unexpected: u64,
    /// Arrived before.
    pub duplicates: u64,
    /// Arrived for the first time after a later one of their key had.
    pub overtaken: u64,
    /// Keys whose last arrival is not their last message.
    pub wrong_ends: u64,
    /// By death, messages that the process had sent and that were not settled.
    pub in_flight: Vec<u64>,
    /// Duplicates of messages that no process had in flight when it died.
    pub unexplained: u64,
    /// Deliveries that were let fail.
    pub failed: u64,
    /// The first of what went wrong, for people.
    pub examples: Vec<String>,
}

/// More say nothing new.
const EXAMPLES: usize = 20;

/// One key's arrivals so far.
#[derive(Clone, Default)]
struct KeyLine {
    /// By place, how often a message arrived, and its id.
    seen: Vec<(u64, i64)>,
    /// The number of messages up to the latest that arrived.
    reached: u64,
    last: Option<u64>,
}

/// Compares. `published` tells by key how many messages it has.
pub fn judge(published: &[u64], arrivals: &[Arrival], deaths: &[Death]) -> Findings {
    let mut findings = Findings::default();
    let line = |count: &u64| KeyLine { seen: vec![(0, 0); *count as usize], ..KeyLine::default() };
    let mut keys: Vec<KeyLine> = published.iter().map(line).collect();
    for (at, arrival) in arrivals.iter().enumerate() {
        findings.note(&mut keys, at, arrival);
    }
    let in_flight: Vec<HashSet<i64>> = deaths.iter().map(|it| it.in_flight(arrivals)).collect();
    for (key, line) in keys.iter().enumerate() {
        findings.close(key, line, &in_flight);
    }
    findings.in_flight = in_flight.iter().map(|ids| ids.len() as u64).collect();
    let mut failed: HashMap<usize, u64> = HashMap::new();
    for arrival in arrivals {
        let by_relay = failed.entry(arrival.relay).or_default();
        *by_relay = arrival.failed.max(*by_relay);
    }
    findings.failed = failed.values().sum();
    findings
}

impl Death {
    /// What it had sent without knowing the outcome to be stored.
    fn in_flight(&self, arrivals: &[Arrival]) -> HashSet<i64> {
        let sent = arrivals.iter().filter(|it| it.relay == self.relay).map(|it| it.id);
        sent.filter(|id| self.unsettled.contains(id)).collect()
    }
}

impl Findings {
    fn note(&mut self, keys: &mut [KeyLine], at: usize, arrival: &Arrival) {
        let Arrival { key, place, id, relay, .. } = *arrival;
        let line = keys.get_mut(key).filter(|line| place < line.seen.len() as u64);
        let Some(line) = line else {
            self.unexpected += 1;
            self.example(format!("key {key}: message {place} was never published"));
            return;
        };
        line.last = Some(place);
        let (times, known) = &mut line.seen[place as usize];
        *times += 1;
        *known = id;
        if *times > 1 {
            self.duplicates += 1;
        } else if place < line.reached {
            self.overtaken += 1;
            let latest = line.reached - 1;
            self.example(format!(
                "key {key}: message {place} (id {id}, relay {relay}, arrival {at}) came first \
                 after message {latest}"
            ));
        }
        line.reached = line.reached.max(place + 1);
    }

    fn close(&mut self, key: usize, line: &KeyLine, in_flight: &[HashSet<i64>]) {
        for (place, (times, id)) in line.seen.iter().enumerate() {
            if *times == 0 {
                self.lost += 1;
                self.example(format!("key {key}: message {place} never arrived"));
            }
            let again = times.saturating_sub(1);
            let deaths = in_flight.iter().filter(|ids| ids.contains(id)).count() as u64;
            if again > deaths {
                self.unexplained += again - deaths;
                self.example(format!(
                    "key {key}: message {place} (id {id}) arrived {times} times, and {deaths} \
                     processes died with it in flight"
                ));
            }
        }
        let end = (line.seen.len() as u64).checked_sub(1);
        if line.last != end {
            self.wrong_ends += 1;
            self.example(format!("key {key}: ends with {:?}, not with {end:?}", line.last));
        }
    }

    fn example(&mut self, text: String) {
        if self.examples.len() < EXAMPLES {
            self.examples.push(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arrivals of key 0, by place and relay; the id of a message is 100 and its place.
    fn check(published: u64, arrivals: &[(u64, usize)], deaths: &[Death]) -> Findings {
        let arrival = |&(place, relay): &(u64, usize)| {
            let id = 100 + place as i64;
            Arrival { key: 0, place, id, relay, failed: 0 }
        };
        let arrivals: Vec<Arrival> = arrivals.iter().map(arrival).collect();
        Findings { examples: Vec::new(), ..judge(&[published], &arrivals, deaths) }
    }

    fn death(relay: usize, unsettled: &[i64]) -> Death {
        Death { relay, unsettled: unsettled.iter().copied().collect() }
    }

    #[test]
    fn all_of_it_once_and_in_order_is_well() {
        assert_eq!(check(3, &[(0, 1), (1, 1), (2, 2)], &[]), Findings::default());
    }

    #[test]
    fn what_is_missing_is_lost_and_what_is_too_much_unexpected() {
        let expected = Findings { lost: 2, unexpected: 1, wrong_ends: 1, ..Findings::default() };
        assert_eq!(check(3, &[(1, 1), (7, 1)], &[]), expected);
    }

    #[test]
    fn a_first_arrival_after_a_later_message_breaks_the_order() {
        let expected = Findings { overtaken: 1, wrong_ends: 1, ..Findings::default() };
        assert_eq!(check(3, &[(0, 1), (2, 1), (1, 1)], &[]), expected);
    }

    #[test]
    fn a_duplicate_breaks_no_order_and_is_explained_by_a_death() {
        let arrivals = [(0, 1), (1, 1), (0, 2), (1, 2), (2, 2)];
        let deaths = [death(1, &[100, 101, 102])];
        let expected = Findings { duplicates: 2, in_flight: vec![2], ..Findings::default() };
        assert_eq!(check(3, &arrivals, &deaths), expected);
        let deaths = [death(1, &[101, 102])];
        let expected =
            Findings { duplicates: 2, in_flight: vec![1], unexplained: 1, ..Findings::default() };
        assert_eq!(check(3, &arrivals, &deaths), expected);
    }

    #[test]
    fn a_key_that_ends_with_an_old_message_is_seen() {
        let expected =
            Findings { duplicates: 1, unexplained: 1, wrong_ends: 1, ..Findings::default() };
        assert_eq!(check(2, &[(0, 1), (1, 1), (0, 2)], &[]), expected);
    }
}
