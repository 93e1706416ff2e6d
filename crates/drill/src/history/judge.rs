//! Compares what was published, what the surviving server has, and what the sink saw.

use super::{Fate, Findings, History, Messages, Moment, Sighting};

/// All that the sink saw of one message.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// When it arrived first, whether it was taken or not.
    pub arrived: Option<Moment>,
    /// When it was first taken …
    pub accepted: Option<Moment>,
    /// … and when the first such delivery was answered.
    pub answered: Option<Moment>,
}

impl Seen {
    fn note(&mut self, sighting: &Sighting) {
        self.arrived = self.arrived.or(Some(sighting.arrived));
        if !sighting.accepted {
            return;
        }
        self.accepted = self.accepted.or(Some(sighting.arrived));
        self.answered = match (self.answered, sighting.answered) {
            (Some(before), Some(now)) => Some(before.min(now)),
            (before, now) => before.or(now),
        };
    }
}

impl History {
    /// Compares.
    pub fn judge(&self) -> Findings {
        let mut findings = Findings { messages: self.messages(), ..Findings::default() };
        let mut seen = vec![Seen::default(); self.attempts.len()];
        for sighting in &self.sightings {
            match seen.get_mut(sighting.number as usize) {
                Some(seen) => seen.note(sighting),
                None => {
                    findings.unexpected += 1;
                    let number = sighting.number;
                    findings
                        .example(|| format!("message {number} arrived, and nobody published it"));
                }
            }
        }
        let stored = self.stored_flags(&mut findings);
        for (number, seen) in seen.iter().enumerate() {
            match stored[number] {
                true => findings.judge_stored(self, number, seen),
                false => findings.judge_missing(self, number, seen),
            }
        }
        self.judge_order(&seen, &mut findings);
        findings.keys_with_older_end = self.keys_with_older_end();
        self.judge_duplicates(&mut findings);
        findings.stall = self.stall(&seen, &stored);
        findings
    }

    fn messages(&self) -> Messages {
        let fates = |is: fn(&Fate) -> bool| {
            self.attempts.iter().filter(|attempt| is(&attempt.fate)).count() as u64
        };
        let accepted = self.sightings.iter().filter(|it| it.accepted).count() as u64;
        Messages {
            attempted: self.attempts.len() as u64,
            committed: fates(|fate| matches!(fate, Fate::Committed(_))),
            rolled_back: fates(|fate| *fate == Fate::RolledBack),
            unknown: fates(|fate| *fate == Fate::Unknown),
            stored: self.stored.len() as u64,
            accepted,
            refused: self.sightings.len() as u64 - accepted,
            ..Messages::default()
        }
    }

    /// By number, whether the surviving server has it.
    fn stored_flags(&self, findings: &mut Findings) -> Vec<bool> {
        let mut stored = vec![false; self.attempts.len()];
        for number in &self.stored {
            match stored.get_mut(*number as usize) {
                Some(flag) if !*flag => *flag = true,
                Some(_) => {
                    findings.unexpected += 1;
                    findings.example(|| format!("the server has message {number} twice"));
                }
                None => {
                    findings.unexpected += 1;
                    findings.example(|| {
                        format!("the server has message {number}: nobody published it")
                    });
                }
            }
        }
        stored
    }

    /// Whether a server fault was on at this moment or later: it may have taken back what was done then.
    fn server_fault_since(&self, moment: Moment) -> bool {
        self.server_faults.last().is_some_and(|fault| fault.to >= moment)
    }
}

impl Findings {
    fn judge_stored(&mut self, history: &History, number: usize, seen: &Seen) {
        if history.attempts[number].fate == Fate::RolledBack {
            self.unexpected += 1;
            self.example(|| format!("message {number} was rolled back, and the server has it"));
        }
        if seen.accepted.is_none() {
            self.lost += 1;
            let (key, fate) = (history.attempts[number].key, history.attempts[number].fate);
            self.example(|| match fate {
                Fate::Committed(at) => format!(
                    "message {number} of key {key}, committed at {:.3} s, was never delivered",
                    at as f64 / 1e6
                ),
                _ => format!("message {number} of key {key} was never delivered"),
            });
        }
    }

    fn judge_missing(&mut self, history: &History, number: usize, seen: &Seen) {
        let fate = history.attempts[number].fate;
        match (fate, seen.accepted) {
            (Fate::RolledBack, Some(_)) => {
                self.unexpected += 1;
                self.example(|| format!("message {number} was rolled back, and it was delivered"));
            }
            (_, Some(at)) if history.server_fault_since(at) => {
                self.messages.delivered_then_taken_back += 1;
            }
            (_, Some(_)) => {
                self.unexpected += 1;
                self.example(|| {
                    format!("message {number} was delivered, and the server does not have it")
                });
            }
            (Fate::Committed(at), None) if history.server_fault_since(at) => {
                self.messages.taken_back += 1;
            }
            (Fate::Committed(_), None) => {
                self.lost += 1;
                self.example(|| {
                    format!("message {number} was acknowledged, and the server does not have it")
                });
            }
            (Fate::Unknown | Fate::RolledBack, None) => {}
        }
    }
}
