//! Progress, and what was set aside, lane by lane.

use super::{AsideRow, OutboxContent};
use crate::outbox::{Aside, HeldKey, Lane, OnDead, SetAside, Settled, Settlement, StuckState};
use std::{collections::BTreeSet, time::Duration};

impl OutboxContent {
    pub(super) fn settle(&mut self, settlement: Settlement, now: Duration) -> Settled {
        let mut held: BTreeSet<Lane> = BTreeSet::new();
        let mut late = Vec::new();
        for progress in settlement.lanes {
            let row = &mut self.lanes[usize::from(progress.lane.0)];
            if row.fence != progress.fence || settlement.number < row.settled {
                late.push(progress.lane);
                continue;
            }
            held.insert(progress.lane);
            row.settled = settlement.number;
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
            if held.contains(&aside.lane) && self.messages.contains_key(&aside.id) {
                touched.extend(self.set_aside(aside, now));
            }
        }
        let freed = touched.into_iter().filter(|key| self.tend(key, now)).collect();
        Settled { late, freed }
    }

    /// Returns the keys that this touched: two if the message goes to another sink now.
    fn set_aside(&mut self, set: SetAside, now: Duration) -> Vec<HeldKey> {
        let before = self.aside.get(&set.id).and_then(AsideRow::held_key);
        let SetAside { lane, id, topic, key, sink, aside } = set;
        let row = self.aside.entry(id).or_insert_with(|| AsideRow {
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
