//! Publishers: transactions of many lengths, some of them rolled back, on a thousand keys, as long as relays keep up.

use super::{
    publish::{Publisher, Transaction},
    sink::{HEALTHY, topic},
};
use crate::drill::stage::{Stage, moment};
use anyhow::{Context, Result};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::{
    ops::Range,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use tidegate::{NewMessage, OpenStore};
use tidegate_drill::{
    history::{Attempt, Fate},
    recorder::Body,
};
use tokio::{task::JoinSet, time::sleep};

const WRITERS: u64 = 4;
const KEYS: u32 = 1_000;
/// Messages of a transaction.
const MESSAGES: Range<u32> = 1..21;
/// Messages per second of one writer, while relays keep up.
const RATE: f64 = 400.0;
/// No more are published while so many are outstanding.
const MOST_OUTSTANDING: u64 = 5_000;
/// Until a writer tries again whom the server refused.
const PAUSE: Duration = Duration::from_millis(50);
const LOOK: Duration = Duration::from_millis(250);
/// Publishers are quiet at the end of each period. Relays that find new messages flush what the server has written;
/// while they find none, settlements stay unflushed, and a crash takes them back.
const PERIOD: Duration = Duration::from_secs(2);
const BUSY: Duration = Duration::from_millis(1_200);

/// What writers share.
struct Shared {
    attempts: Mutex<Vec<Attempt>>,
    outstanding: AtomicU64,
    stop: AtomicBool,
    start: Instant,
}

/// Writers at work.
pub struct Writers {
    shared: Arc<Shared>,
    tasks: JoinSet<Result<()>>,
}

impl Writers {
    pub fn start(stage: &Stage, seed: u64) -> Self {
        let (attempts, outstanding, stop) = Default::default();
        let shared = Arc::new(Shared { attempts, outstanding, stop, start: stage.start });
        let mut tasks = JoinSet::new();
        tasks.spawn(watch(shared.clone(), stage.store.clone()));
        for writer in 0..WRITERS {
            let rng = ChaCha8Rng::seed_from_u64(seed.wrapping_mul(WRITERS).wrapping_add(writer));
            tasks.spawn(write(shared.clone(), Publisher::new(&stage.url), rng));
        }
        Self { shared, tasks }
    }

    /// Returns all that was attempted.
    pub async fn stop(mut self) -> Result<Vec<Attempt>> {
        self.shared.stop.store(true, Relaxed);
        while let Some(ended) = self.tasks.join_next().await {
            ended.context("a publisher of the drill failed")??;
        }
        Ok(std::mem::take(&mut *self.shared.attempts()))
    }
}

impl Shared {
    fn attempts(&self) -> MutexGuard<'_, Vec<Attempt>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn goes_on(&self) -> bool {
        !self.stop.load(Relaxed)
    }

    /// Numbers new messages. They count as attempted from now on.
    fn attempt(&self, keys: &[u32]) -> Result<(usize, Vec<NewMessage>)> {
        let mut attempts = self.attempts();
        let first = attempts.len();
        for key in keys {
            let healthy = topic(*key) == HEALTHY;
            attempts.push(Attempt { key: *key, healthy, fate: Fate::Unknown });
        }
        let messages = keys.iter().zip(first as u32..).map(|(key, n)| {
            Ok(NewMessage {
                topic: topic(*key).to_owned(),
                key: Some(format!("key-{key}")),
                payload: serde_json::to_vec(&Body { n })?,
                ..NewMessage::default()
            })
        });
        Ok((first, messages.collect::<Result<_>>()?))
    }

    fn decide(&self, numbers: Range<usize>, fate: Fate) {
        self.attempts()[numbers].iter_mut().for_each(|attempt| attempt.fate = fate);
    }
}

/// Looks how many messages are outstanding.
async fn watch(shared: Arc<Shared>, store: OpenStore) -> Result<()> {
    while shared.goes_on() {
        // It fails while the server is down.
        if let Ok(outstanding) = store.outstanding().await {
            shared.outstanding.store(outstanding.messages, Relaxed);
        }
        sleep(LOOK).await;
    }
    Ok(())
}

async fn write(shared: Arc<Shared>, mut publisher: Publisher, mut rng: ChaCha8Rng) -> Result<()> {
    while shared.goes_on() {
        if shared.outstanding.load(Relaxed) > MOST_OUTSTANDING {
            sleep(LOOK).await;
            continue;
        }
        sleep(quiet(shared.start.elapsed())).await;
        let count = rng.random_range(MESSAGES);
        let keys: Vec<u32> = (0..count).map(|_| rng.random_range(0..KEYS)).collect();
        let (first, messages) = shared.attempt(&keys)?;
        let transaction =
            Transaction { messages, open: open(&mut rng), commits: !rng.random_bool(0.1) };
        let began = Instant::now();
        let start = shared.start;
        let (fate, result) = publisher.publish(transaction, move || moment(start)).await;
        shared.decide(first..first + keys.len(), fate);
        match result {
            Ok(()) => {
                let due = Duration::from_secs_f64(f64::from(count) / RATE);
                sleep(due.saturating_sub(began.elapsed())).await;
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
    Ok(())
}

/// How long a publisher is quiet from this time on.
fn quiet(elapsed: Duration) -> Duration {
    let into = Duration::from_nanos((elapsed.as_nanos() % PERIOD.as_nanos()) as u64);
    if into < BUSY { Duration::ZERO } else { PERIOD - into }
}

/// Most transactions are short, and a few take up to a second.
fn open(rng: &mut ChaCha8Rng) -> Duration {
    match rng.random_range(0..50) {
        0 => Duration::from_millis(rng.random_range(100..1_000)),
        1..10 => Duration::from_millis(rng.random_range(1..50)),
        _ => Duration::ZERO,
    }
}
