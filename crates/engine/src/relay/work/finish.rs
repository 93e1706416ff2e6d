//! When a relay ends, and how.

use super::{Event, RelayError, Work, settle::settle};
use std::time::Duration;
use tidegate_core::{
    StoreError,
    outbox::{GiveBack, LANES, StuckQuery, StuckState, TopicStatus},
};
use tokio::time::{Instant, sleep_until, timeout};

/// How long the last calls to a store may take after a stop, beyond the grace.
const STORE_GRACE: Duration = Duration::from_secs(2);

impl Work<'_> {
    /// Whether nothing is left that can be delivered without somebody's help.
    pub(super) async fn is_drained(&mut self) -> Result<bool, RelayError> {
        if !self.look.nothing_left || self.look.looking || !self.flow.is_at_rest() {
            return Ok(false);
        }
        if self.lanes.relays == 1 && self.flow.lanes.len() == usize::from(LANES) {
            return Ok(true);
        }
        self.look.nothing_left = false;
        match self.is_everything_stuck().await {
            Err(error) if error.is_passing() => Ok(false),
            answer => Ok(answer?),
        }
    }

    /// Whether others have nothing left either that will be delivered by itself.
    async fn is_everything_stuck(&mut self) -> Result<bool, StoreError> {
        let stuck = |it: &TopicStatus| it.waiting + it.unrouted;
        let later =
            StuckQuery { state: Some(StuckState::Later), limit: 1, ..StuckQuery::default() };
        let topics = self.relay.store.outbox().await?.topics;
        let is_gone = |it: &TopicStatus| {
            self.relay.plan.sink_of(&it.topic).is_some_and(|sink| self.flow.gone[sink])
        };
        let is_stuck = topics.iter().all(|it| is_gone(it) || it.outstanding == stuck(it))
            && self.relay.store.stuck(later).await?.is_empty();
        Ok(is_stuck && !self.waits_for_others(&topics))
    }

    /// Whether others have no route for something that has one here: if they are gone, it will be known
    /// when their leases have expired.
    fn waits_for_others(&mut self, topics: &[TopicStatus]) -> bool {
        let has_route = |it: &&TopicStatus| self.relay.plan.sink_of(&it.topic).is_some();
        let Some(topic) = topics.iter().filter(|it| it.unrouted > 0).find(has_route) else {
            self.unrouted_since = None;
            return false;
        };
        let now = Instant::now();
        let since = *self.unrouted_since.get_or_insert(now);
        let waits = now - since < self.relay.options.lease * 2;
        if !waits {
            tracing::warn!("another relay has no route for {}: its messages are left", topic.topic);
        }
        waits
    }

    /// Whether an answer is still to come.
    fn is_busy(&self) -> bool {
        let sending = self.sending.iter().any(|groups| !groups.is_empty());
        let settling = self.flow.is_settling() && !self.settle_failed;
        sending || settling || self.look.looking || self.lanes.sharing || self.lanes.giving > 0
    }

    /// Settles what may have been settled already, and what is still to be.
    async fn settle_all(&mut self) -> Result<(), StoreError> {
        while let Some(settlement) = self.flow.settling.clone().or_else(|| self.flow.settlement()) {
            let settled = settle(self.relay.store.clone(), settlement).await?;
            self.flow.settled(settled);
        }
        Ok(())
    }

    /// Waits for what is on its way, settles it, and gives all lanes back.
    pub(super) async fn finish(&mut self) {
        let grace = self.relay.options.grace;
        // What waits for a sink that is gone would wait for ever.
        self.recall();
        let rest = async {
            while self.is_busy() {
                // What is on its way is this relay's until it is back.
                self.share();
                let renew = match self.lanes.sharing {
                    true => Instant::now() + self.relay.options.lease,
                    false => self.lanes.next,
                };
                tokio::select! {
                    biased;
                    Some(event) = self.events.join_next() => match event {
                        // Nothing that was read now will be sent.
                        Ok(Event::Claimed(..)) => self.look.looking = false,
                        event => {
                            if let Err(error) = self.happened(event) {
                                tracing::warn!("{error}: what is not settled will be repeated");
                                return;
                            }
                        }
                    },
                    () = sleep_until(renew) => {}
                }
            }
        };
        if timeout(grace, rest).await.is_err() {
            tracing::warn!("deliveries took longer than the grace: they may be repeated");
        }
        self.events.shutdown().await;
        let unanswered: Vec<_> =
            self.sending.iter_mut().flat_map(|groups| groups.drain(..)).collect();
        unanswered.into_iter().for_each(|group| self.answered(group));
        self.flow.wind_up();
        let store = self.relay.store.clone();
        if !self.settle_failed
            && !matches!(timeout(STORE_GRACE, self.settle_all()).await, Ok(Ok(())))
        {
            tracing::warn!("the store does not answer: what is not settled will be repeated");
        }
        let (relay, lanes) = (self.relay.options.relay.clone(), self.flow.leases());
        let give_back = store.give_back_lanes(GiveBack { relay, lanes, ends: true });
        if let Ok(Err(error)) = timeout(STORE_GRACE, give_back).await {
            tracing::warn!("lanes were not given back and will expire: {error}");
        }
        self.show();
    }
}
