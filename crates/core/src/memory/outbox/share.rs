//! Lanes for relays, evenly.

use super::{AsideRow, OutboxContent, name};
use crate::{
    Fence,
    outbox::{
        Gained, GiveBack, HeldKey, LANES, Lane, LaneLease, Position, Route, Share, Shared,
        StuckState,
    },
};
use std::{collections::BTreeSet, time::Duration};

impl OutboxContent {
    pub(super) fn share(
        &mut self,
        request: Share,
        now: Duration,
        mut next_fence: impl FnMut() -> Fence,
    ) -> Shared {
        self.relays.retain(|_, expires| *expires > now);
        self.relays.insert(name(&request.relay), now + request.lease);
        let is_known = request.epoch == self.epoch_name();
        let is_kept = |lease: &&LaneLease| is_known && self.lane(lease.lane).fence == lease.fence;
        let (kept, lost): (Vec<&LaneLease>, Vec<_>) = request.held.iter().partition(is_kept);
        let lost = lost.iter().map(|lease| lease.lane).collect();
        let share = usize::from(LANES).div_ceil(self.relays.len());
        let is_unknown = |lane: &Lane| {
            self.lane(*lane).relay == request.relay.0 && kept.iter().all(|it| it.lane != *lane)
        };
        let unknown: Vec<Lane> = Lane::all().filter(is_unknown).collect();
        unknown.into_iter().for_each(|lane| self.let_go(lane));
        self.forget_numbers();
        let is_free = |lane: &Lane| {
            let relay = &self.lane(*lane).relay;
            *relay != request.relay.0 && !self.relays.contains_key(relay)
        };
        let free: Vec<Lane> = Lane::all().filter(is_free).collect();
        let mut gained = Vec::new();
        for lane in free.into_iter().take(share.saturating_sub(kept.len())) {
            let row = &mut self.lanes[usize::from(lane.0)];
            (row.fence, row.relay) = (next_fence(), name(&request.relay));
            gained.push(self.gain(lane, &request.routes, now));
        }
        self.forget_numbers();
        Shared {
            epoch: self.epoch_name(),
            settled: self.settled.get(&request.relay.0).copied().unwrap_or(0),
            surplus: kept.len().saturating_sub(share),
            relays: self.relays.len(),
            pending: 0,
            gained,
            lost,
        }
    }

    /// A relay that has no lanes numbers its settlements anew when it gets some.
    fn forget_numbers(&mut self) {
        let lanes = &self.lanes;
        self.settled.retain(|relay, _| lanes.iter().any(|lane| lane.relay == *relay));
    }

    fn let_go(&mut self, lane: Lane) {
        let row = &mut self.lanes[usize::from(lane.0)];
        (row.fence, row.relay) = (Fence::NOBODY, String::new());
    }

    fn gain(&mut self, lane: Lane, routes: &[Route], now: Duration) -> Gained {
        self.reroute(lane, routes, now);
        let held = self.held_keys(lane);
        held.iter().for_each(|key| {
            self.tend(key, now);
        });
        let row = self.lane(lane);
        let lowest = row.lags.iter().map(|lag| lag.cursor).chain([row.cursor]).min().unwrap_or(0);
        let behind = self.aside.range(Position(lowest + 1)..);
        Gained {
            lease: LaneLease { lane, fence: row.fence },
            cursor: row.cursor,
            lags: row.lags.clone(),
            before: row.before.clone(),
            aside: behind.filter(|(_, it)| it.lane == lane).map(|(id, _)| *id).collect(),
            held,
        }
    }

    /// What goes to another sink now waits there in its key's line. What nobody takes any more has no
    /// route.
    fn reroute(&mut self, lane: Lane, routes: &[Route], now: Duration) {
        let is_alive = |row: &&mut AsideRow| {
            row.lane == lane && (row.holds() || row.state != StuckState::Dead)
        };
        for row in self.aside.values_mut().filter(is_alive) {
            let sink = Route::find(routes, &row.topic).map_or("", |route| &route.sink);
            if row.sink == sink {
                continue;
            }
            sink.clone_into(&mut row.sink);
            match row.state {
                StuckState::Dead => {}
                _ if sink.is_empty() => row.state = StuckState::Unrouted,
                StuckState::Later => {}
                _ => {
                    row.become_due(now);
                    if row.key.is_some() {
                        row.state = StuckState::Behind;
                    }
                }
            }
        }
    }

    fn held_keys(&self, lane: Lane) -> Vec<HeldKey> {
        let of_lane = self.aside.values().filter(|row| row.lane == lane && row.holds());
        let keys: BTreeSet<HeldKey> = of_lane.filter_map(|row| row.held_key()).collect();
        keys.into_iter().collect()
    }

    pub(super) fn give_back(&mut self, request: GiveBack) {
        for lease in request.lanes {
            if self.lane(lease.lane).fence == lease.fence {
                self.let_go(lease.lane);
            }
        }
        self.forget_numbers();
        if request.ends {
            self.relays.remove(&name(&request.relay));
        }
    }
}
