//! A sink as it is: what it makes of requests, whoever sent them.

use super::{
    dice::{dice, ms},
    hazards::Hazard,
    history::{Event, History},
    scenario::{Nature, Scenario, ServerPlan},
};
use rand::RngExt;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tidegate_core::{
    Position,
    sink::{Outcome, Verdict},
};

/// How long a relay waits for an answer at most.
const DEADLINE_MS: u64 = 10_000;

/// A system that takes messages.
pub struct Server {
    pub place: usize,
    pub plan: ServerPlan,
    scenario: Arc<Scenario>,
    history: History,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// How often each message was in a request.
    asked: BTreeMap<Position, u64>,
    /// How often each was looked at by itself.
    tries: BTreeMap<usize, u32>,
    /// Messages that somebody has mended.
    mended: BTreeSet<usize>,
    /// There is no more trouble.
    calm: bool,
}

/// One item of a request.
#[derive(Clone, Debug)]
pub struct Parcel {
    pub id: Position,
    /// Its place in the scenario.
    pub message: usize,
    pub key: Option<String>,
}

/// What becomes of a request.
#[derive(Clone, Debug)]
pub struct Course {
    /// Until it takes effect …
    pub before: Duration,
    /// … and from there until the answer.
    pub after: Duration,
    /// Whether it takes effect although the sender is gone.
    pub outlives: bool,
    /// So many items are looked at.
    looks_at: usize,
    /// What is answered, if not what became of each.
    instead: Option<Outcome>,
}

impl Server {
    pub fn new(place: usize, scenario: &Arc<Scenario>, history: &History) -> Self {
        Self {
            place,
            plan: scenario.servers[place].clone(),
            scenario: scenario.clone(),
            history: history.clone(),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds the lock")
    }

    /// From now on there is no more trouble, but for what is wrong with messages.
    pub fn calm_down(&self) {
        self.state().calm = true;
    }

    /// Some messages are good from now on.
    pub fn mend(&self, messages: &[usize]) {
        self.state().mended.extend(messages);
    }

    /// What will become of a request that arrives now.
    pub fn course(&self, parcels: &[Parcel]) -> Course {
        let lowest = parcels.iter().map(|parcel| parcel.id).min().unwrap_or_default();
        let (asked, calm) = {
            let mut state = self.state();
            let asked = state.asked.entry(lowest).or_default();
            *asked += 1;
            (*asked, state.calm)
        };
        let mut rng = dice(self.scenario.seed, [self.place as u64, lowest.0 as u64, asked]);
        let takes = ms(rng.random_range(0..=self.plan.takes.as_millis() as u64));
        let (part, outlives) = (rng.random_range(0..=parcels.len()), rng.random_bool(0.7));
        let lands = rng.random_bool(0.5) && self.scenario.hazards.has(Hazard::Unknown);
        let (lost, times_out) = (rng.random_bool(self.plan.unknown), rng.random_bool(0.5));
        let hangs = rng.random_range(1_000..DEADLINE_MS);
        let effective = rng.random_range(0..=hangs);
        let retry_after = rng.random_bool(0.5).then(|| ms(rng.random_range(100..3_000)));
        let course = |before, after, looks_at, instead| Course {
            before,
            after,
            outlives: outlives && self.scenario.hazards.has(Hazard::Outlive),
            looks_at,
            instead,
        };
        let looks_at = if lands { part } else { 0 };
        let gone = || Outcome::Unavailable("it is not there".to_owned());
        let now = self.history.now();
        let spell = self.plan.spells.iter().find(|it| it.from <= now && now < it.until);
        match spell.filter(|_| !calm).map(|spell| spell.kind) {
            Some(Hazard::Absent) => course(takes, ms(1), looks_at, Some(gone())),
            Some(Hazard::Hang) => {
                let rest = ms(hangs - effective);
                course(ms(effective), rest, looks_at, Some(Outcome::TimedOut))
            }
            Some(_) => {
                let reason = "too much".to_owned();
                course(takes, ms(1), 0, Some(Outcome::Throttled { retry_after, reason }))
            }
            None if lost && !calm => {
                let outcome = if times_out { Outcome::TimedOut } else { gone() };
                course(takes, ms(hangs), part, Some(outcome))
            }
            None => course(takes, takes / 4, parcels.len(), self.refusal(parcels)),
        }
    }

    fn refusal(&self, parcels: &[Parcel]) -> Option<Outcome> {
        if parcels.len() > self.plan.too_large {
            return Some(Outcome::TooLarge("too large".to_owned()));
        }
        let bad = |parcel: &Parcel| self.nature(parcel) == Nature::Bad;
        let refused = self.plan.refuses && parcels.iter().any(bad);
        refused.then(|| Outcome::Refused("one is bad".to_owned()))
    }

    fn nature(&self, parcel: &Parcel) -> Nature {
        match self.state().mended.contains(&parcel.message) {
            true => Nature::Good,
            false => self.scenario.messages[parcel.message].nature,
        }
    }

    /// A request takes effect. Returns what is answered.
    pub fn take(&self, life: usize, request: u64, course: &Course, parcels: &[Parcel]) -> Outcome {
        let refused = matches!(
            course.instead,
            Some(Outcome::Refused(_) | Outcome::TooLarge(_) | Outcome::Throttled { .. })
        );
        let looks_at = if refused { 0 } else { course.looks_at };
        let mut held: BTreeSet<&str> = BTreeSet::new();
        let (mut verdicts, mut accepted) = (Vec::new(), Vec::new());
        for parcel in &parcels[..looks_at] {
            let key = parcel.key.as_deref();
            if key.is_some_and(|key| held.contains(key)) {
                verdicts.push(Verdict::Behind);
                continue;
            }
            let (verdict, lands) = self.look(parcel);
            if lands {
                accepted.push(parcel);
            }
            if verdict != Verdict::Done {
                held.extend(key);
            }
            verdicts.push(verdict);
        }
        if !accepted.is_empty() {
            let ids = accepted.iter().map(|parcel| parcel.id).collect();
            let messages = accepted.iter().map(|parcel| parcel.message).collect();
            self.history.add(life, Event::Accepted { request, ids, messages });
        }
        course.instead.clone().unwrap_or(Outcome::Answered(verdicts))
    }

    /// What becomes of one item, and whether it lands.
    fn look(&self, parcel: &Parcel) -> (Verdict, bool) {
        let nature = self.nature(parcel);
        let tries = {
            let mut state = self.state();
            let tries = state.tries.entry(parcel.message).or_default();
            *tries += 1;
            *tries
        };
        match nature {
            Nature::Flaky(times) if tries <= times => (Verdict::Retry("flaky".to_owned()), false),
            Nature::Busy(times) if tries <= times => {
                let retry_after = (tries % 2 == 0).then(|| ms(300));
                (Verdict::Throttled { retry_after }, false)
            }
            Nature::Away(times, lands) if tries <= times => {
                let lands = lands && self.scenario.hazards.has(Hazard::Unknown);
                (Verdict::Unavailable("not there for this".to_owned()), lands)
            }
            Nature::Bad => (Verdict::Dead("bad".to_owned()), false),
            _ => (Verdict::Done, true),
        }
    }
}
