//! Duplicates, and what relays had in flight when they were killed or stopped.
//!
//! A duplicate is a delivery of a message that the sink had taken before. It is explained by a fault that was on, or
//! was still showing, between the two deliveries: of the server, because a settlement may be taken back or stay
//! unanswered; or of one of the two relays that made the deliveries. The first relay explains it if the message was in
//! flight when the fault began: not answered yet, or answered just before, so that it was not settled. The second one
//! explains it if it was stopped: it delivers on until it learns that its lanes are another's.

use super::{Duplicates, Findings, History, InFlight, Moment, RelayFault, Sighting};
use std::collections::HashMap;

/// A relay that goes on settles what was answered within less than this.
const SETTLED_WITHIN: Moment = 1_000_000;

impl History {
    pub(super) fn judge_duplicates(&self, findings: &mut Findings) {
        let faults = self.faults_by_relay();
        let mut last: HashMap<u32, Sighting> = HashMap::new();
        let mut duplicates = Duplicates::default();
        for sighting in &self.sightings {
            if let Some(before) = last.get(&sighting.number) {
                duplicates.total += 1;
                let (from, to) = (before.arrived, sighting.arrived);
                if self.server_fault_shows(from, to) {
                    duplicates.after_server_faults += 1;
                } else if self.relay_fault_shows(&faults, before, sighting) {
                    duplicates.after_relay_faults += 1;
                } else {
                    duplicates.unexplained += 1;
                    let (number, one, other) = (sighting.number, before.relay, sighting.relay);
                    findings.example(|| {
                        format!(
                            "message {number} was delivered by relay {one} at {:.3} s and by relay \
                             {other} at {:.3} s, and neither was disturbed",
                            from as f64 / 1e6,
                            to as f64 / 1e6
                        )
                    });
                }
            }
            if sighting.accepted {
                last.insert(sighting.number, *sighting);
            }
        }
        findings.duplicates = duplicates;
        findings.in_flight = self.in_flight(&faults);
    }

    fn faults_by_relay(&self) -> HashMap<u32, Vec<RelayFault>> {
        let mut faults: HashMap<u32, Vec<RelayFault>> = HashMap::new();
        for fault in &self.relay_faults {
            faults.entry(fault.relay).or_default().push(*fault);
        }
        faults
    }

    fn server_fault_shows(&self, from: Moment, to: Moment) -> bool {
        self.server_faults.iter().any(|it| it.from <= to && from <= it.to + self.aftermath)
    }

    fn relay_fault_shows(
        &self,
        faults: &HashMap<u32, Vec<RelayFault>>,
        before: &Sighting,
        after: &Sighting,
    ) -> bool {
        let of = |relay: u32| faults.get(&relay).into_iter().flatten();
        let shows =
            |it: &&RelayFault| it.from <= after.arrived && before.arrived <= it.to + self.aftermath;
        let was_in_flight = |it: &RelayFault| {
            before.answered.is_none_or(|answered| it.from < answered + SETTLED_WITHIN)
        };
        of(before.relay).filter(shows).any(was_in_flight)
            || of(after.relay).filter(shows).any(|it| after.arrived <= it.to + self.aftermath)
    }

    fn in_flight(&self, faults: &HashMap<u32, Vec<RelayFault>>) -> InFlight {
        let mut unanswered: HashMap<(u32, Moment), u64> = HashMap::new();
        let mut just_answered: HashMap<(u32, Moment), u64> = HashMap::new();
        for sighting in self.sightings.iter().filter(|it| it.accepted) {
            for fault in faults.get(&sighting.relay).into_iter().flatten() {
                let moment = fault.from;
                if sighting.arrived > moment {
                    continue;
                }
                match sighting.answered {
                    Some(answered) if answered + SETTLED_WITHIN <= moment => {}
                    Some(answered) if answered <= moment => {
                        *just_answered.entry((sighting.relay, moment)).or_default() += 1;
                    }
                    _ => *unanswered.entry((sighting.relay, moment)).or_default() += 1,
                }
            }
        }
        let count = |key| {
            let of = |counts: &HashMap<(u32, Moment), u64>| counts.get(&key).copied().unwrap_or(0);
            of(&unanswered) + of(&just_answered)
        };
        let most = self.relay_faults.iter().map(|it| count((it.relay, it.from))).max();
        InFlight {
            faults: self.relay_faults.len() as u64,
            unanswered: unanswered.values().sum(),
            just_answered: just_answered.values().sum(),
            most: most.unwrap_or(0),
        }
    }
}
