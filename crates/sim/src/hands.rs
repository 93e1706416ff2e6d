//! Hands whose runs take virtual time.

use crate::workload::Behaviour;
use async_trait::async_trait;
use futures_util::future::join_all;
use std::{collections::BTreeMap, future::pending, sync::Arc, time::Duration};
use tidegate_engine::act::{Acting, Desk, Hands, HandsError, Next, Workbench};
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

pub struct VirtualHands {
    pub count: usize,
    /// By workload.
    pub behaviours: Arc<BTreeMap<String, Behaviour>>,
    /// Told when a run ends the worker.
    pub killed: Arc<Notify>,
}

#[async_trait]
impl Hands for VirtualHands {
    fn count(&self) -> usize {
        self.count
    }

    async fn work(&self, desk: Arc<Desk>) -> Result<(), HandsError> {
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
        let mut workbench = Workbench::default();
        while let Some((mut item, turn)) = acting.begin(Instant::now()) {
            loop {
                let behaviour = self.behaviours[&acting.group().batch.workload];
                sleep(behaviour.duration(item.index)).await;
                if behaviour.deadly == Some(item.index) {
                    self.killed.notify_one();
                    pending::<()>().await;
                }
                let acted = workbench.act(acting.group(), item);
                let next = acting.record(turn, acted, Instant::now());
                desk.recorded(next);
                match next {
                    Next::Go { item: following, .. } => item = following,
                    Next::Wait => break,
                    Next::End | Next::Superseded => return,
                }
            }
            while acting.must_wait() {
                sleep(Duration::from_millis(1)).await;
            }
        }
    }
}
