//! A relay's way to its store: slow, failing, and recorded.

use super::{
    dice::{dice, ms},
    history::{Event, History},
    ice::Ice,
    life::Stage,
    scenario::LifePlan,
};
use crate::Faults;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::{future::Future, sync::Mutex, time::Duration};
use tidegate_core::{Class, Kind, StoreError};
use tokio::time::sleep;

pub struct Wire {
    faults: Faults,
    outage: Option<(Duration, Duration)>,
    life: usize,
    ice: Ice,
    history: History,
    rng: Mutex<ChaCha8Rng>,
}

impl Wire {
    pub fn new(stage: &Stage, life: usize, plan: &LifePlan, ice: &Ice) -> Self {
        Self {
            faults: plan.faults,
            outage: plan.outage,
            life,
            ice: ice.clone(),
            history: stage.history.clone(),
            rng: Mutex::new(dice(stage.scenario.seed, [0xca11, life as u64, 0])),
        }
    }

    pub fn note(&self, event: Event) {
        self.history.add(self.life, event);
    }

    /// Luck of its own for a part of a call.
    pub fn fork(&self) -> ChaCha8Rng {
        self.rng.lock().expect("nothing panics while it holds the lock").fork()
    }

    /// Returns when the relay is not frozen.
    pub async fn thawed(&self) {
        self.ice.thawed().await;
    }

    /// One call: the way there, the effect, the way back; each way may fail.
    pub async fn call<T>(
        &self,
        operation: &'static str,
        effect: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.ice.thawed().await;
        self.leg(operation, false).await?;
        let answer = effect.await;
        if answer.as_ref().is_err_and(|error| error.kind() == Kind::WentBack) {
            self.note(Event::Noticed);
        }
        self.leg(operation, true).await?;
        answer
    }

    async fn leg(&self, operation: &'static str, effective: bool) -> Result<(), StoreError> {
        let (pause, fails) = {
            let mut rng = self.rng.lock().expect("nothing panics while it holds the lock");
            (self.faults.leg(&mut rng), self.faults.strikes(&mut rng))
        };
        sleep(pause).await;
        let now = self.history.now();
        let out = self.outage.is_some_and(|(from, until)| from <= now && now < until);
        if out {
            sleep(ms(100)).await;
        }
        if effective {
            self.ice.thawed().await;
        }
        if fails || out {
            self.note(Event::Failed { operation, effective });
            let message = "the connection broke";
            return Err(StoreError::new(Kind::Unreachable, Class::Unavailable, operation, message));
        }
        Ok(())
    }
}
