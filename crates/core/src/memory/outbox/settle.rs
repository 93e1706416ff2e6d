//! Progress, and what was set aside, lane by lane.

use super::{AsideRow, OutboxContent};
use crate::{
    StoreError,
    outbox::{Aside, HeldKey, Lane, OnDead, Progress, SetAside, Settled, Settlement, StuckState},
};
use std::{collections::BTreeSet, time::Duration};

impl OutboxContent {
    pub(super) fn settle(
        &mut self,
        settlement: Settlement,
        now: Duration,
    ) -> Result<Settled, StoreError> {
        const OPERATION: &str = "settle messages";
        self.check_epoch(OPERATION, &settlement.epoch)?;
        let is_leased = |it: &&Progress| self.lane(it.lane).fence == it.fence;
        let relay = settlement.lanes.iter().find(is_leased).map(|it| &self.lane(it.lane).relay);
        let last = relay.and_then(|relay| self.settled.get(relay)).copied().unwrap_or(0);
        let is_late_copy = settlement.number < last;
        if let Some(relay) = relay.filter(|_| !is_late_copy) {
            if settlement.number > last + 1 {
                return Err(StoreError::went_back(OPERATION));
            }
            self.settled.insert(relay.clone(), settlement.number);
        }
        let mut held: BTreeSet<Lane> = BTreeSet::new();
        let mut late = Vec::new();
        for progress in settlement.lanes {
            let row = &mut self.lanes[usize::from(progress.lane.0)];
            if row.fence != progress.fence || is_late_copy {
                late.push(progress.lane);
                continue;
            }
            held.insert(progress.lane);
            row.cursor = row.cursor.max(progress.cursor);
            (row.lags, row.before) = (progress.lags, progress.before);
        }
        let mut touched: BTreeSet<HeldKey> = BTreeSet::new();
        for (lane, id) in settlement.done {
            if held.contains(&lane)
                && let Some(row) = self.aside.remove(&id)
            {
                touched.extend(row.held_key());
            }
        }
        for aside in settlement.aside {
            // Somebody may have dropped it meanwhile.
            if held.contains(&aside.lane) && self.messages.contains_key(&aside.position) {
                touched.extend(self.set_aside(aside, now));
            }
        }
        let freed = touched.into_iter().filter(|key| self.tend(key, now)).collect();
        Ok(Settled { late, freed })
    }

    /// Returns the keys that this touched: two if the message goes to another sink now.
    fn set_aside(&mut self, set: SetAside, now: Duration) -> Vec<HeldKey> {
        let before = self.aside.get(&set.position).and_then(AsideRow::held_key);
        let SetAside { lane, position, topic, key, sink, aside } = set;
        let row = self.aside.entry(position).or_insert_with(|| AsideRow {
            lane,
            topic,
            key,
            sink: String::new(),
            state: StuckState::Behind,
            attempts: 0,
            reason: String::new(),
            then: OnDead::Skip,
            due: now,
        });
        row.sink = sink;
        let waits = aside == Aside::Behind;
        row.set(&aside, now);
        if waits && row.key.is_none() {
            row.become_due(now); // there is nothing that it could wait behind
        }
        before.into_iter().chain(row.held_key()).collect()
    }
}
