//! Lets a scenario happen.

use super::{
    dice::dice,
    hazards::Hazard,
    history::{Entry, Event, History, position},
    indexed::Table,
    late::{self, Shared},
    life::{Stage, Store},
    scenario::{Decision, Ending, Scenario},
    server::Server,
};
use crate::{plan::Fate, scheduler::Scheduler};
use rand::RngExt;
use std::{
    collections::BTreeSet,
    ops::Range,
    sync::{Arc, Mutex},
    time::Duration,
};
use tidegate_core::{
    Memory, MessageId, NewMessage, Position,
    outbox::{AuditLine, Selection, Stuck, StuckQuery, StuckState, TopicStatus},
};
use tokio::{
    runtime::Builder,
    time::{sleep_until, timeout},
};

/// What trouble there is ends by itself within this.
const TROUBLE: Duration = Duration::from_secs(600);
/// A healthy relay delivers what is left within this: expired leases, delays, retries and all.
const DRAIN: Duration = Duration::from_secs(120);

/// How the world looks when all is done.
#[derive(Debug)]
pub struct End {
    /// What never ended, or ended too soon.
    pub failure: Option<String>,
    /// All that happened.
    pub history: Vec<Entry>,
    /// How often the relay of each life was polled, with the waiting for its start.
    pub polls: Vec<u64>,
    /// What is set aside.
    pub stuck: Vec<Stuck>,
    /// How topics stand.
    pub topics: Vec<TopicStatus>,
}

impl End {
    /// Names the history: the same for the same world.
    pub fn digest(&self) -> u64 {
        let text = format!("{:?}", self.history);
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
    }
}

/// Lets the scenario happen, on a thread of its own. An error says what panicked.
pub fn simulate(scenario: &Scenario) -> Result<End, String> {
    let scenario = Arc::new(scenario.clone());
    let world = std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime can be made").block_on(happen(scenario))
    });
    world.join().map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        format!("panicked: {}", text.unwrap_or_default())
    })
}

async fn happen(scenario: Arc<Scenario>) -> End {
    let history = History::begin();
    let clock = history.clone();
    // Far from zero, so that nothing is due before it is published.
    let clock = move || Duration::from_secs(1_000) + clock.now();
    let store = match &scenario.index {
        Some(index) => Store::Indexed(Table::new(scenario.seed, index.lag, clock)),
        None => Store::Log(Memory::new(clock)),
    };
    let server = |place| Arc::new(Server::new(place, &scenario, &history));
    let servers = (0..scenario.servers.len()).map(server).collect();
    let database = Shared::default();
    let stage = Stage { scenario: scenario.clone(), store, database, servers, history };
    let mut polls = Vec::new();
    let mut failure = trouble(&stage, &mut polls).await.err();
    if failure.is_none() {
        stage.servers.iter().for_each(|server| server.calm_down());
        let drain = stage.clone().live(scenario.lives.len(), scenario.healthy());
        failure = match timeout(DRAIN, drain).await {
            Ok(drained) => drained.err(),
            Err(_) => Some("the drain does not end".to_owned()),
        };
    }
    let query = StuckQuery { limit: 10_000, ..StuckQuery::default() };
    let fine = "reading memory does not fail";
    let people = stage.store.people();
    let stuck = people.stuck(query).await.expect(fine);
    let topics = people.outbox().await.expect(fine).topics;
    End { failure, history: stage.history.read(), polls, stuck, topics }
}

/// All relays but the healthy one, publishers, and whoever decides about the dead.
async fn trouble(stage: &Stage, polls: &mut Vec<u64>) -> Result<(), String> {
    let errors: Arc<Mutex<Vec<String>>> = Arc::default();
    let mut scheduler = Scheduler::new(stage.scenario.seed);
    for (life, plan) in stage.scenario.lives.iter().enumerate() {
        let fate = match plan.ending {
            Ending::CrashAtPoll { polls } => Fate::Crashes { polls },
            _ => Fate::Lives,
        };
        let (life, errors) = (stage.clone().live(life, plan.clone()), errors.clone());
        let life = async move {
            if let Err(error) = life.await {
                errors.lock().expect("nothing panics while it holds the lock").push(error);
            }
        };
        scheduler.add(life, fate);
    }
    if stage.scenario.hazards.has(Hazard::LateCommit) {
        for together in together(&stage.scenario) {
            scheduler.add(late::publish(stage.clone(), together), Fate::Lives);
        }
    } else {
        scheduler.add(publish(stage.clone()), Fate::Lives);
    }
    scheduler.add(decide(stage.clone()), Fate::Lives);
    scheduler.add(go_back(stage.clone()), Fate::Lives);
    *polls = timeout(TROUBLE, scheduler).await.map_err(|_| "a relay does not stop")?;
    let errors = errors.lock().expect("nothing panics while it holds the lock");
    errors.first().map_or(Ok(()), |error| Err(error.clone()))
}

/// The place that history gives to whoever is no relay.
pub fn nobody(stage: &Stage) -> usize {
    stage.scenario.lives.len() + 1
}

/// Messages that come in at the same time, by their places.
fn together(scenario: &Scenario) -> Vec<Range<usize>> {
    let mut next = 0;
    let groups = scenario.messages.chunk_by(|one, other| one.at == other.at).map(|group| {
        next += group.len();
        next - group.len()..next
    });
    groups.collect()
}

/// The message at a place of the scenario.
pub fn new_message(stage: &Stage, place: usize) -> NewMessage {
    let plan = &stage.scenario.messages[place];
    NewMessage {
        topic: stage.scenario.topics[plan.topic].name.clone(),
        key: plan.key.clone(),
        payload: place.to_string().into_bytes(),
        delay: plan.delay,
        ..NewMessage::default()
    }
}

async fn publish(stage: Stage) {
    for together in together(&stage.scenario) {
        let at = stage.scenario.messages[together.start].at;
        sleep_until(stage.history.instant(at)).await;
        let places: Vec<usize> = together.collect();
        for (message, id) in places.iter().zip(put(&stage, &places).await) {
            let (id, message) = (position(&id), *message);
            stage.history.add(nobody(&stage), Event::Published { id, message });
        }
    }
}

/// Publishes messages of the scenario.
async fn put(stage: &Stage, places: &[usize]) -> Vec<MessageId> {
    let new = |place: &usize| new_message(stage, *place);
    match (&stage.store, &stage.scenario.index) {
        (Store::Indexed(table), Some(index)) => {
            let put = |place: &usize| {
                let (name, ahead) = &index.messages[*place];
                table.put(name, table.now() + *ahead, new(place));
                MessageId::text(name.as_str())
            };
            places.iter().map(put).collect()
        }
        (store, _) => {
            let ids = store.people().publish(places.iter().map(new).collect()).await;
            ids.expect("the scenario has only good messages")
        }
    }
}

async fn go_back(stage: Stage) {
    let Store::Log(store) = &stage.store else { return };
    for go_back in &stage.scenario.go_backs {
        sleep_until(stage.history.instant(go_back.to)).await;
        let (saved, before) = (store.save(), stage.history.read().len());
        sleep_until(stage.history.instant(go_back.at)).await;
        let since = stage.history.read().split_off(before);
        let published = |entry: &Entry| match entry.event {
            Event::Published { message, .. } => Some(message),
            _ => None,
        };
        let gone = since.iter().filter_map(published).collect();
        match go_back.fences {
            true => store.go_back(&saved),
            false => store.go_back_unfenced(&saved),
        }
        stage.history.add(nobody(&stage), Event::WentBack(gone));
    }
}

async fn decide(stage: Stage) {
    for (number, decision) in stage.scenario.decisions.iter().enumerate() {
        sleep_until(stage.history.instant(decision.at)).await;
        carry_out(&stage, number, *decision).await;
    }
}

async fn carry_out(stage: &Stage, number: usize, decision: Decision) {
    let fine = "reading memory does not fail";
    let dead = StuckQuery { state: Some(StuckState::Dead), limit: 10_000, ..StuckQuery::default() };
    let people = stage.store.people();
    let dead = people.stuck(dead).await.expect(fine);
    let mut rng = dice(stage.scenario.seed, [0xdec1de, number as u64, 0]);
    let chosen: Vec<MessageId> =
        dead.into_iter().map(|it| it.id).filter(|_| rng.random_bool(decision.share)).collect();
    if chosen.is_empty() {
        return;
    }
    let ids: Vec<Position> = chosen.iter().map(position).collect();
    let which = Selection { ids: Some(chosen), ..Selection::default() };
    let by = AuditLine::default();
    if decision.retry {
        if decision.mends {
            let messages = places(stage, &ids);
            stage.servers.iter().for_each(|server| server.mend(&messages));
        }
        stage.history.add(nobody(stage), Event::Retried(ids));
        people.retry_dead(which, &by).await.expect(fine);
    } else {
        stage.history.add(nobody(stage), Event::Dropped(ids));
        people.drop_dead(which, &by).await.expect(fine);
    }
}

/// The places of messages in the scenario.
fn places(stage: &Stage, ids: &[Position]) -> Vec<usize> {
    let ids: BTreeSet<Position> = ids.iter().copied().collect();
    let place = |entry: Entry| match entry.event {
        Event::Published { id, message } if ids.contains(&id) => Some(message),
        _ => None,
    };
    stage.history.read().into_iter().filter_map(place).collect()
}
