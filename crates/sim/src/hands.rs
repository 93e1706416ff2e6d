//! Hands whose runs take virtual time.

use crate::workload::Behaviour;
use async_trait::async_trait;
use futures_util::future::join_all;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tidegate_engine::act::{Acting, Desk, Hands, HungRuns, Next, act_on};
use tokio::time::{Instant, sleep};

pub struct VirtualHands {
    pub count: usize,
    /// By workload.
    pub behaviours: Arc<BTreeMap<String, Behaviour>>,
}

#[async_trait]
impl Hands for VirtualHands {
    fn count(&self) -> usize {
        self.count
    }

    async fn work(&self, desk: Arc<Desk>) -> Result<(), HungRuns> {
        join_all((0..self.count).map(|_| self.act(&desk))).await;
        Ok(())
    }
}

impl VirtualHands {
    async fn act(&self, desk: &Desk) {
        while let Some(acting) = desk.next().await {
            self.act_through(&acting, desk).await;
        }
    }

    async fn act_through(&self, acting: &Acting, desk: &Desk) {
        let mut result = Vec::new();
        while let Some((item, turn)) = acting.begin(Instant::now()) {
            let behaviour = self.behaviours[&acting.group().batch.workload];
            sleep(behaviour.duration(item.index)).await;
            let acted = act_on(acting.group(), item, Instant::now(), &mut result);
            let next = acting.record(turn, acted, &result, Instant::now());
            desk.recorded(next);
            match next {
                Next::Go { .. } => {}
                Next::Wait => {
                    while acting.must_wait() {
                        sleep(Duration::from_millis(1)).await;
                    }
                }
                Next::End | Next::Superseded => return,
            }
        }
    }
}
