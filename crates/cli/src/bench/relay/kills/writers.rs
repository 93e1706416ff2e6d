//! Publishes at a steady pace, as long as relays keep up. Each writer has keys of its own, so that of
//! each key one message is committed before the next is published.

use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};
use tidegate::{Kind, NewMessage, OpenStore};
use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};

pub const KEYS: usize = 1_000;
pub const TOPIC: &str = "kills";
const WRITERS: usize = 4;
/// Messages that a writer publishes at once, and how often: at most 8,000 per second together.
const CHUNK: usize = 40;
const EVERY: Duration = Duration::from_millis(20);
/// More are not published while so many are outstanding: enough to keep relays busy, and on a slow
/// machine no more than they get done in time.
pub const MOST_OUTSTANDING: u64 = 40_000;

/// What a message says.
#[derive(Debug, Serialize, Deserialize)]
pub struct Payload {
    pub key: usize,
    /// Its place among the messages of its key.
    pub place: u64,
}

/// Writers at work.
pub struct Writers {
    stop: Arc<AtomicBool>,
    tasks: JoinSet<Result<Vec<(usize, u64)>>>,
}

impl Writers {
    pub fn start(store: &OpenStore) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut tasks = JoinSet::new();
        for writer in 0..WRITERS {
            tasks.spawn(write(store.clone(), writer, stop.clone()));
        }
        Self { stop, tasks }
    }

    /// Returns by key how many messages were published.
    pub async fn stop(mut self) -> Result<Vec<u64>> {
        self.stop.store(true, Relaxed);
        let mut published = vec![0; KEYS];
        while let Some(ended) = self.tasks.join_next().await {
            for (key, count) in ended?? {
                published[key] = count;
            }
        }
        Ok(published)
    }
}

/// Returns for each of its keys how many messages it has published.
async fn write(
    store: OpenStore,
    writer: usize,
    stop: Arc<AtomicBool>,
) -> Result<Vec<(usize, u64)>> {
    let mut keys: Vec<(usize, u64)> =
        (0..KEYS).filter(|key| key % WRITERS == writer).map(|key| (key, 0)).collect();
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !stop.load(Relaxed) {
        ticks.tick().await;
        let chunk = &mut keys[..CHUNK];
        let messages = chunk.iter().map(|(key, place)| message(*key, *place));
        match store.publish(messages.collect::<Result<_>>()?).await {
            Err(error) if error.kind() == Kind::Full => continue,
            answer => answer?,
        };
        chunk.iter_mut().for_each(|(_, place)| *place += 1);
        keys.rotate_left(CHUNK);
    }
    Ok(keys)
}

fn message(key: usize, place: u64) -> Result<NewMessage> {
    Ok(NewMessage {
        topic: TOPIC.to_owned(),
        key: Some(format!("key-{key}")),
        payload: serde_json::to_vec(&Payload { key, place })?,
        ..NewMessage::default()
    })
}
