//! What a seed decides before anything runs.
//!
//! Everything is drawn whatever the hazards are, and then left out: the same seed stays the same world,
//! with more or less trouble in it.

use super::{
    database::Mistake,
    dice::{dice, ms},
    hazards::{Hazard, Hazards},
    ice::Frost,
    indexed::IndexPlan,
    routing::Routing,
};
use crate::Faults;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::time::Duration;
use tidegate_core::{RetryPolicy, outbox::OnDead};
use tidegate_engine::relay::TopicPolicy;

/// Trouble ends here: whatever relay still runs is asked to stop.
pub const HORIZON: Duration = Duration::from_secs(20);
/// The last message is published before this.
const LAST_MESSAGE_MS: u64 = 12_000;

/// One simulated world.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Decides all that happens by chance while it runs.
    pub seed: u64,
    /// What may go wrong.
    pub hazards: Hazards,
    /// What messages are about.
    pub topics: Vec<Topic>,
    /// Where they go, at first and later.
    pub routings: Vec<Routing>,
    /// The sinks, as they are.
    pub servers: Vec<ServerPlan>,
    /// What is published, in order.
    pub messages: Vec<MessagePlan>,
    /// The lives of relays, beside that of the healthy one that comes last.
    pub lives: Vec<LifePlan>,
    /// What somebody decides about the dead.
    pub decisions: Vec<Decision>,
    /// When the store goes back in time.
    pub go_backs: Vec<GoBack>,
    /// What publishers and claims do wrong, so that a test can see whether a law finds it.
    pub mistake: Option<Mistake>,
    /// The store is read by state, through this index.
    pub index: Option<IndexPlan>,
}

/// The store goes back in time, as a server does when a standby that is behind takes over. Relays live on.
#[derive(Clone, Copy, Debug)]
pub struct GoBack {
    /// When.
    pub at: Duration,
    /// To what it was then.
    pub to: Duration,
    /// Whether lanes get other fences. If not, a relay that renews its lanes learns of it by the epoch alone.
    pub fences: bool,
}

/// The trouble of worlds whose store goes back in time. Without that which lets an old request arrive at a sink at any
/// time: there a history that was lost cannot be told from a broken law.
const GOING_BACK: &str = "crash,restart,stop,relays,sinks,store,slow-store,outage,absent,hang,throttle,unknown,\
    verdicts,refuse";

/// A topic and what holds for it.
#[derive(Clone, Debug)]
pub struct Topic {
    /// Its name.
    pub name: String,
    /// What holds for it.
    pub policy: TopicPolicy,
}

/// A message to publish.
#[derive(Clone, Debug)]
pub struct MessagePlan {
    /// When.
    pub at: Duration,
    /// The place of its topic.
    pub topic: usize,
    /// What must stay in order.
    pub key: Option<String>,
    /// For how long it is not to be delivered.
    pub delay: Option<Duration>,
    /// What sinks make of it.
    pub nature: Nature,
}

/// What a sink makes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// It takes it.
    Good,
    /// It fails so often.
    Flaky(u32),
    /// It is throttled so often.
    Busy(u32),
    /// The system is not there for it so often; whether it lands nevertheless.
    Away(u32, bool),
    /// It fails for good.
    Bad,
}

/// A sink, as it is.
#[derive(Clone, Debug)]
pub struct ServerPlan {
    /// The most items that it takes in one request.
    pub max_group: usize,
    /// It refuses more than this as too large, although it did not say so.
    pub too_large: usize,
    /// Whether a request may carry several topics.
    pub mixes: bool,
    /// A request takes up to this.
    pub takes: Duration,
    /// Whether it refuses a group for the sake of one bad item.
    pub refuses: bool,
    /// The share of requests whose answer gets lost after they took effect.
    pub unknown: f64,
    /// When it is in trouble.
    pub spells: Vec<Spell>,
}

/// A time of trouble.
#[derive(Clone, Debug)]
pub struct Spell {
    /// From when on.
    pub from: Duration,
    /// Until when.
    pub until: Duration,
    /// Which hazard: absent, hang or throttle.
    pub kind: Hazard,
}

/// One life of a relay.
#[derive(Clone, Debug)]
pub struct LifePlan {
    /// Which routing it knows.
    pub routing: usize,
    /// How long its leases last.
    pub lease: Duration,
    /// How long it may take to stop.
    pub grace: Duration,
    /// Its longest pause between two looks.
    pub poll: Duration,
    /// For how long it keeps what was sent.
    pub keep: Option<Duration>,
    /// When it starts.
    pub starts_at: Duration,
    /// When it is not polled.
    pub frosts: Vec<Frost>,
    /// What its store does wrong.
    pub faults: Faults,
    /// When its store is not there.
    pub outage: Option<(Duration, Duration)>,
    /// How it ends.
    pub ending: Ending,
}

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is asked to stop at this time.
    Stop {
        /// Since the world began.
        at: Duration,
    },
    /// Without a word, at this time.
    Crash {
        /// Since the world began.
        at: Duration,
    },
    /// Without a word, when it has been polled this often.
    CrashAtPoll {
        /// After this many polls.
        polls: u64,
    },
    /// By itself when nothing is left to deliver.
    Drain,
}

/// What somebody does to dead messages.
#[derive(Clone, Copy, Debug)]
pub struct Decision {
    /// When.
    pub at: Duration,
    /// Retry, or drop.
    pub retry: bool,
    /// The share of the dead that it is about.
    pub share: f64,
    /// Whether what is retried was mended before.
    pub mends: bool,
}

impl Scenario {
    /// The world of a seed.
    pub fn from_seed(seed: u64, hazards: Hazards) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let rng = &mut rng;
        let topics = topics(rng, &hazards);
        let names: Vec<String> = topics.iter().map(|topic| topic.name.clone()).collect();
        let mut servers: Vec<_> =
            (0..rng.random_range(1..=3)).map(|_| server(rng, &hazards)).collect();
        if !hazards.has(Hazard::Sinks) {
            servers.truncate(1);
        }
        let routings = routings(rng, &hazards, &names, servers.len());
        let mut messages = messages(rng, &hazards, &topics);
        if hazards.has(Hazard::LateCommit) {
            // The closer to each other, the more transactions are open at a time.
            let closer = one_of(&mut dice(seed, [0x1a7e, 0, 1]), &[1, 10, 100]);
            messages.iter_mut().for_each(|message| message.at /= closer);
        }
        let lives = lives(rng, &hazards, routings.len());
        let decisions = decisions(rng, &hazards);
        Self {
            seed,
            hazards,
            topics,
            routings,
            servers,
            messages,
            lives,
            decisions,
            go_backs: Vec::new(),
            mistake: None,
            index: None,
        }
    }

    /// The world of a seed, whose store goes back in time now and then.
    pub fn going_back(seed: u64) -> Self {
        let hazards = Hazards::parse(GOING_BACK).expect("these are hazards");
        let mut scenario = Self::from_seed(seed, hazards);
        let mut rng = dice(seed, [0x60bac, 0, 0]);
        let mut earliest = 0;
        for _ in 0..rng.random_range(1..=4) {
            let at = rng.random_range(earliest + 1..earliest + 6_000);
            // Seldom by much: what nobody has read yet is lost without being missed.
            let by = one_of(&mut rng, &[1, 10, 100, 500, 3_000]).min(at - earliest);
            let fences = rng.random_bool(0.5);
            scenario.go_backs.push(GoBack { at: ms(at), to: ms(at - by), fences });
            earliest = at;
        }
        scenario
    }

    /// The world of a seed, whose store is read through an index that lags.
    pub fn indexed(seed: u64, hazards: Hazards) -> Self {
        // Only a log has ids that are drawn before a transaction commits.
        let hazards = hazards.without(&[Hazard::LateCommit]);
        let mut scenario = Self::from_seed(seed, hazards);
        // A delayed message takes its place when it is due: of those that coalesce, it would stand for later ones.
        for message in &mut scenario.messages {
            message.delay =
                message.delay.filter(|_| !scenario.topics[message.topic].policy.coalesce);
        }
        let mut rng = dice(seed, [0x1d3, 0, 0]);
        let lives = scenario.lives.len() + 1;
        scenario.index = Some(IndexPlan::random(&mut rng, &scenario.messages, lives));
        scenario
    }

    /// The policy for a message.
    pub fn policy(&self, message: usize) -> TopicPolicy {
        self.topics[self.messages[message].topic].policy
    }

    /// The server that a topic always goes to, if there is one.
    pub fn steady(&self, topic: usize) -> Option<usize> {
        let name = &self.topics[topic].name;
        let first = self.routings[0].sink_of(name)?;
        let same = self.routings.iter().all(|routing| routing.sink_of(name) == Some(first));
        same.then_some(first.1)
    }

    /// The relay that delivers what the others have left.
    pub fn healthy(&self) -> LifePlan {
        LifePlan {
            routing: self.routings.len() - 1,
            lease: ms(5_000),
            grace: ms(5_000),
            poll: ms(100),
            keep: None,
            starts_at: Duration::ZERO,
            frosts: Vec::new(),
            faults: Faults::default(),
            outage: None,
            ending: Ending::Drain,
        }
    }
}

pub fn one_of<T: Copy>(rng: &mut ChaCha8Rng, choice: &[T]) -> T {
    choice[rng.random_range(0..choice.len())]
}

fn topics(rng: &mut ChaCha8Rng, hazards: &Hazards) -> Vec<Topic> {
    let topic = |name: &str| {
        let on_dead = one_of(rng, &[OnDead::Skip, OnDead::Skip, OnDead::Block, OnDead::Park]);
        let (unordered, coalesce) = (rng.random_bool(0.15), rng.random_bool(0.25));
        let policy = TopicPolicy {
            retry: RetryPolicy {
                max_attempts: rng.random_range(1..5),
                base: ms(rng.random_range(1..500)),
                cap: ms(800),
            },
            on_dead: if hazards.has(Hazard::Hold) { on_dead } else { OnDead::Skip },
            unordered: unordered && hazards.has(Hazard::Unordered),
            coalesce: coalesce && hazards.has(Hazard::Coalesce),
        };
        Topic { name: name.to_owned(), policy }
    };
    ["a.1", "a.2", "b.1", "b.2"].map(topic).into()
}

fn routings(
    rng: &mut ChaCha8Rng,
    hazards: &Hazards,
    topics: &[String],
    servers: usize,
) -> Vec<Routing> {
    let mut first = Routing::random(rng, topics, servers);
    let unrouted = rng.random_bool(0.2).then(|| rng.random_range(0..topics.len()));
    if let Some(topic) = unrouted.filter(|_| hazards.has(Hazard::Unrouted)) {
        first.unroute(&topics[topic], topics);
    }
    let mut all = vec![first];
    for _ in 0..one_of(rng, &[0, 0, 1, 2]) {
        let next = all[all.len() - 1].changed(rng, topics);
        all.push(next);
    }
    if !hazards.has(Hazard::Reroute) {
        all.truncate(1);
    }
    all
}

fn server(rng: &mut ChaCha8Rng, hazards: &Hazards) -> ServerPlan {
    let spell = |rng: &mut ChaCha8Rng| {
        let from = ms(rng.random_range(0..15_000));
        Spell {
            from,
            until: from + ms(rng.random_range(200..6_000)),
            kind: one_of(rng, &[Hazard::Absent, Hazard::Hang, Hazard::Throttle]),
        }
    };
    let spells: Vec<Spell> = (0..rng.random_range(0..4)).map(|_| spell(rng)).collect();
    let (refuses, too_large) = (rng.random_bool(0.4), one_of(rng, &[2, 5, 1_000, 1_000]));
    let unknown = one_of(rng, &[0.0, 0.02, 0.15]);
    let refuse = hazards.has(Hazard::Refuse);
    ServerPlan {
        max_group: one_of(rng, &[1, 3, 10, 100]),
        too_large: if refuse { too_large } else { usize::MAX },
        mixes: rng.random_bool(0.5),
        takes: ms(one_of(rng, &[2, 30, 300])),
        refuses: refuses && refuse,
        unknown: if hazards.has(Hazard::Unknown) { unknown } else { 0.0 },
        spells: spells.into_iter().filter(|spell| hazards.has(spell.kind)).collect(),
    }
}

fn messages(rng: &mut ChaCha8Rng, hazards: &Hazards, topics: &[Topic]) -> Vec<MessagePlan> {
    let keys = rng.random_range(1..8);
    let failing = one_of(rng, &[0.0, 0.05, 0.3]);
    let delayed = one_of(rng, &[0.0, 0.1]);
    let mut times: Vec<u64> =
        (0..rng.random_range(5..50)).map(|_| rng.random_range(0..LAST_MESSAGE_MS)).collect();
    times.sort_unstable();
    let mut messages = Vec::new();
    for at in times {
        for _ in 0..rng.random_range(1..6) {
            let topic = rng.random_range(0..topics.len());
            let number = rng.random_range(0..keys);
            let keyless = rng.random_bool(0.2);
            let delay = rng.random_bool(delayed).then(|| ms(rng.random_range(1..8_000)));
            let nature = nature(rng, failing);
            let policy = topics[topic].policy;
            // A key of its own for each kind of topic, unless they may mingle.
            let kind = (policy.coalesce && !hazards.has(Hazard::Mingle)).then_some(topic);
            messages.push(MessagePlan {
                at: ms(at),
                topic,
                key: (!keyless).then(|| format!("k{number}-{kind:?}")),
                delay: delay.filter(|_| hazards.has(Hazard::Delay)),
                nature: if hazards.has(Hazard::Verdicts) { nature } else { Nature::Good },
            });
        }
    }
    messages
}

fn nature(rng: &mut ChaCha8Rng, failing: f64) -> Nature {
    let fails = rng.random_bool(failing);
    let (times, lands) = (rng.random_range(1..4), rng.random_bool(0.5));
    let nature = [
        Nature::Flaky(times),
        Nature::Flaky(times),
        Nature::Busy(times),
        Nature::Away(times, lands),
        Nature::Bad,
        Nature::Bad,
    ][rng.random_range(0..6)];
    if fails { nature } else { Nature::Good }
}

fn lives(rng: &mut ChaCha8Rng, hazards: &Hazards, routings: usize) -> Vec<LifePlan> {
    let mut lives = Vec::new();
    for relay in 0..rng.random_range(1..=4) {
        let mut starts_at = ms(rng.random_range(0..4_000));
        for nth in 0..rng.random_range(1..=4) {
            let life = life(rng, hazards, starts_at, routings);
            let pause = ms(rng.random_range(0..3_000));
            let end = match life.ending {
                Ending::Stop { at } | Ending::Crash { at } => at,
                Ending::CrashAtPoll { .. } | Ending::Drain => starts_at + ms(2_000),
            };
            starts_at = end + pause;
            let calm = nth == 0 || hazards.has(Hazard::Restart);
            let early = life.starts_at < HORIZON;
            if calm && early && (relay == 0 || hazards.has(Hazard::Relays)) {
                lives.push(life);
            }
        }
    }
    lives
}

fn life(rng: &mut ChaCha8Rng, hazards: &Hazards, starts_at: Duration, routings: usize) -> LifePlan {
    let ends_at = (starts_at + ms(rng.random_range(500..12_000))).min(HORIZON);
    let polls = rng.random_range(5..600);
    let crash = hazards.has(Hazard::Crash);
    let stop = match hazards.has(Hazard::Restart) {
        true => Ending::Stop { at: ends_at },
        false => Ending::Stop { at: HORIZON },
    };
    let ending = match rng.random_range(0..4) {
        0 | 1 => stop,
        2 if crash => Ending::Crash { at: ends_at },
        3 if crash => Ending::CrashAtPoll { polls },
        _ => stop,
    };
    let frost = |rng: &mut ChaCha8Rng| Frost {
        polls: rng.random_range(5..400),
        length: ms(rng.random_range(100..8_000)),
    };
    let frosts: Vec<Frost> = (0..one_of(rng, &[0, 0, 0, 1, 2])).map(|_| frost(rng)).collect();
    let (from, length) = (starts_at + ms(rng.random_range(0..6_000)), rng.random_range(0..6_000));
    let outage = rng.random_bool(0.2).then_some((from, from + ms(length)));
    let faults = Faults::random(rng);
    // Who starts late knows the latest routes, more often than not.
    let known = (starts_at.as_millis() as usize * routings / 12_000).min(routings - 1);
    let routing = if rng.random_bool(0.1) { rng.random_range(0..routings) } else { known };
    let keep = rng.random_bool(0.3).then(|| ms(rng.random_range(0..4_000)));
    let lease = ms(one_of(rng, &[1_000, 1_500, 5_000]));
    let grace = one_of(rng, &[500, 3_000]);
    LifePlan {
        routing,
        lease,
        grace: ms(if hazards.has(Hazard::Stop) { grace } else { 10_000 }),
        poll: ms(one_of(rng, &[50, 100, 400])),
        keep: keep.filter(|_| hazards.has(Hazard::Retain)),
        starts_at,
        frosts: if hazards.has(Hazard::Freeze) { frosts } else { Vec::new() },
        faults: Faults {
            failing: if hazards.has(Hazard::Store) { faults.failing } else { 0.0 },
            slow: if hazards.has(Hazard::SlowStore) { faults.slow } else { 0.0 },
            delay: faults.delay,
        },
        outage: outage.filter(|_| hazards.has(Hazard::Outage)),
        ending,
    }
}

fn decisions(rng: &mut ChaCha8Rng, hazards: &Hazards) -> Vec<Decision> {
    let decision = |rng: &mut ChaCha8Rng| Decision {
        at: ms(rng.random_range(1_000..20_000)),
        retry: rng.random_bool(0.6),
        share: one_of(rng, &[0.3, 1.0]),
        mends: rng.random_bool(0.5),
    };
    let mut all: Vec<Decision> = (0..one_of(rng, &[0, 0, 1, 4])).map(|_| decision(rng)).collect();
    all.sort_by_key(|decision| decision.at);
    if hazards.has(Hazard::Operator) { all } else { Vec::new() }
}
