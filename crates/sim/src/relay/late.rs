//! Messages that come in by transactions, and are read up to the horizon only.

use super::{
    database::{Database, Look, Mistake, Transaction, steps},
    dice::{dice, ms},
    history::Event,
    life::{Stage, Store},
    world::{new_message, nobody},
};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::{
    ops::Range,
    sync::{Arc, Mutex, MutexGuard},
};
use tidegate_core::{
    Memory, Outbox, Position, StoreError,
    outbox::{
        Claim, ClaimRequest,
        horizon::{Asked, Horizon, Seen},
    },
};
use tokio::time::{sleep, sleep_until};

/// The database in which the messages of the memory store come in. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Shared(Arc<Mutex<Database>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Database> {
        self.0.lock().expect("nothing panics while it holds the lock")
    }
}

/// Publishes messages in one transaction.
pub async fn publish(stage: Stage, messages: Range<usize>) {
    let Store::Log(store) = &stage.store else { return };
    let first = messages.start;
    let mut rng = dice(stage.scenario.seed, [0x1a7e, first as u64, 0]);
    let places: Vec<usize> = messages.collect();
    let steps = steps(&mut rng, &places, stage.scenario.mistake);
    let longest = [1, 3, 30, 1_000][rng.random_range(0..4)];
    let mut transaction = Transaction::new(first as u64);
    sleep_until(stage.history.instant(stage.scenario.messages[first].at)).await;
    for step in steps {
        let committed = transaction.step(&mut stage.database.lock(), step);
        let new = committed.iter().map(|(id, place)| (Position(*id), new_message(&stage, *place)));
        store.publish_as(new.collect()).expect("the scenario has only good messages");
        for (id, message) in committed {
            stage.history.add(nobody(&stage), Event::Published { id: Position(id), message });
        }
        sleep(ms(rng.random_range(0..=longest))).await;
    }
}

/// How one relay reads.
pub struct Reading {
    database: Shared,
    store: Memory,
    mistake: Option<Mistake>,
    horizon: Mutex<Horizon>,
}

/// What a claim read, and what it learned.
pub struct Answer {
    pub claim: Claim,
    asked: Asked,
    seen: Seen,
}

impl Reading {
    pub fn new(stage: &Stage, store: &Memory) -> Self {
        Self {
            database: stage.database.clone(),
            store: store.clone(),
            mistake: stage.scenario.mistake,
            horizon: Mutex::default(),
        }
    }

    fn horizon(&self) -> MutexGuard<'_, Horizon> {
        self.horizon.lock().expect("nothing panics while it holds the lock")
    }

    pub fn ask(&self) -> Asked {
        self.horizon().ask()
    }

    /// Reads what is decided. Others act between the snapshot and the looks that follow it.
    pub async fn claim(
        &self,
        request: ClaimRequest,
        asked: Asked,
        mut rng: ChaCha8Rng,
    ) -> Result<Answer, StoreError> {
        let mut look = Look::begin(&self.database.lock(), self.mistake);
        let mut claim = self.store.claim_messages(request).await?;
        let longest = [1, 10, 100][rng.random_range(0..3)];
        loop {
            sleep(ms(rng.random_range(0..=longest))).await;
            let is_last = look.step(&self.database.lock(), &asked);
            if is_last {
                break;
            }
        }
        let seen = look.seen(&asked);
        for reading in &mut claim.readings {
            reading.messages.retain(|message| message.position.0 <= seen.decided);
            reading.more &= reading.read_to < seen.decided;
            if !reading.more {
                reading.read_to = seen.decided;
            }
        }
        Ok(Answer { claim, asked, seen })
    }

    /// The answer has arrived.
    pub fn learn(&self, answer: Answer) -> Claim {
        let mut horizon = self.horizon();
        horizon.learn(&answer.asked, &answer.seen);
        Claim { held_back: horizon.is_behind(), ..answer.claim }
    }
}
