//! Lanes are leased, renewed and given back.

use crate::{
    DynamoDb,
    aside::{Loading, Record},
    leases::{Change, Leases, Plan, Relay, Watch},
};
use std::{
    collections::BTreeSet,
    time::{Instant, SystemTime},
};
use tidegate_core::{
    StoreError,
    outbox::{
        Gained, GiveBack, HeldKey, LANES, Lane, LaneLease, Position, Share, Shared,
        by_state::AsideRow,
    },
};

const OPERATION: &str = "share lanes";

/// How often lanes are asked for again if others took some at the same time.
const TRIES: usize = 5;

impl DynamoDb {
    pub(crate) async fn share(&self, request: &Share) -> Result<Shared, StoreError> {
        let mut relay = self.relay.lock().await;
        let until = Instant::now() + request.lease;
        let leases = self.beat(&mut relay.beat, request).await?;
        // What was leased, but is not known to the relay yet, is held as well.
        let loading: Vec<LaneLease> =
            relay.loading.iter().flat_map(|loading| loading.lanes.iter().copied()).collect();
        let held: Vec<LaneLease> = request.held.iter().chain(&loading).copied().collect();
        let (leases, plan, taken) = self.take(&mut relay.watch, leases, request, &held).await?;
        self.tenure().renew(&request.relay.0, &leases, until);
        let is_lost = |lane: &Lane| plan.lost.contains(lane);
        if relay.loading.is_some() && loading.iter().any(|lease| is_lost(&lease.lane)) {
            relay.loading = None;
        }
        let mut lanes = relay.loading.as_ref().map(|it| it.lanes.clone()).unwrap_or_default();
        if !taken.is_empty() {
            lanes.extend(taken);
            relay.loading = Some(Loading::new(lanes));
        }
        let was_known = |lane: &Lane| request.held.iter().any(|lease| lease.lane == *lane);
        let lost: Vec<Lane> = plan.lost.into_iter().filter(was_known).collect();
        self.forget(request, &lost);
        let mut shared = Shared {
            epoch: leases.epoch.clone(),
            surplus: plan.surplus,
            relays: plan.relays,
            lost,
            ..Shared::default()
        };
        match next_reload(relay.steered, leases.steered, relay.loading.is_some()) {
            Reload::Unneeded => relay.steered = Some(leases.steered),
            Reload::Later => {}
            Reload::Now => {
                if relay.reloading.is_none() {
                    relay.reloading =
                        Some(self.begin_reload(request, &shared.lost, leases.steered));
                }
                let reloading = relay.reloading.as_mut();
                let done = match reloading {
                    Some((loading, _)) => {
                        loading.step(&self.client, OPERATION, request.lease / 3).await?
                    }
                    None => false,
                };
                if let Some((loading, steered)) = relay.reloading.take_if(|_| done) {
                    self.end_reload(loading, request, &shared.lost).await;
                    relay.steered = Some(steered);
                }
            }
        }
        if let Some(loading) = &mut relay.loading {
            match loading.step(&self.client, OPERATION, request.lease / 3).await? {
                false => shared.pending = loading.lanes.len(),
                true => {
                    let loaded = relay.loading.take();
                    shared.gained = loaded.map(|it| self.gain(it, request)).unwrap_or_default();
                }
            }
        }
        Ok(shared)
    }

    /// Says that the relay lives. One that is not known as what it was begins anew, and has lost what it held.
    async fn beat(&self, beat: &mut Option<i64>, request: &Share) -> Result<Leases, StoreError> {
        let (name, client) = (&request.relay.0, &self.client);
        loop {
            let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            let at_ms = since_1970.unwrap_or_default().as_millis() as i64;
            let next = i64::from(rand::random::<u32>()) << 16 | i64::from(rand::random::<u16>());
            let relay = Relay { beat: next, lease: request.lease, at_ms };
            match client.beat(OPERATION, name, relay, *beat).await? {
                Some(leases) => {
                    *beat = Some(next);
                    return Ok(leases);
                }
                None => {
                    // It was taken for dead, or there is no item yet.
                    *beat = None;
                    client.leases(OPERATION).await?;
                }
            }
        }
    }

    /// Takes what is free, up to the relay's share.
    async fn take(
        &self,
        watch: &mut Watch,
        mut leases: Leases,
        request: &Share,
        held: &[LaneLease],
    ) -> Result<(Leases, Plan, Vec<LaneLease>), StoreError> {
        for _ in 0..TRIES {
            let gone = watch.see(&leases, Instant::now());
            let plan = leases.plan(&request.relay.0, held, &gone);
            if plan.changes_nothing() {
                return Ok((leases, plan, Vec::new()));
            }
            let (change, taken) = Change::take(&request.relay.0, &leases, &plan, rand::random());
            match self.client.change_leases(OPERATION, change).await? {
                Some(changed) => return Ok((changed, plan, taken)),
                None => leases = self.client.leases(OPERATION).await?,
            }
        }
        // Others take lanes all the time: the next share may find some.
        let gone = BTreeSet::new();
        let mut plan = leases.plan(&request.relay.0, held, &gone);
        plan.take.clear();
        Ok((leases, plan, Vec::new()))
    }

    fn forget(&self, request: &Share, lost: &[Lane]) {
        let is_held =
            |lane: Lane| request.held.iter().any(|it| it.lane == lane) && !lost.contains(&lane);
        self.book().forget(|lane| !is_held(lane));
        self.sizes().forget(|lane| !is_held(lane));
        self.finder().forget(|lane| !is_held(lane));
    }

    /// What is known about lanes from now on.
    fn gain(&self, loaded: Loading, request: &Share) -> Vec<Gained> {
        let mut book = self.book();
        let now = self.now();
        // Positions begin at the time, so that they are behind those that others gave out before.
        let first = (now.as_micros() as i64) << LANES.ilog2();
        let last = loaded.records.iter().map(|record| record.position.0).max();
        let cursor = last.map_or(first, |last| last.max(first));
        for record in loaded.records {
            self.sizes().note(&record.row.row, record.row.lane, record.bytes);
            book.insert(record.position, record.row);
        }
        self.finder().gain(loaded.lanes.iter().map(|lease| lease.lane), Instant::now());
        let gained = |lease: &LaneLease| {
            let held: Vec<HeldKey> = book.gain(lease.lane, &request.routes, now);
            let (lags, before, aside) = Default::default();
            Gained { lease: *lease, cursor, lags, before, held, aside }
        };
        loaded.lanes.iter().map(gained).collect()
    }

    /// People have decided about dead messages: some may wait again, and some that held keys may be gone. All that
    /// waits is read again, for a part of the lease at a time, while messages are settled.
    fn begin_reload(&self, request: &Share, lost: &[Lane], steered: i64) -> (Loading, i64) {
        *self.written_since() = Some(BTreeSet::new());
        (Loading::new(kept(request, lost)), steered)
    }

    /// What was read replaces what was known, but for what this relay has written meanwhile.
    async fn end_reload(&self, loaded: Loading, request: &Share, lost: &[Lane]) {
        // What is being written was read, or will be noted.
        let _alone = self.writing.lock().await;
        let written = self.written_since().take().unwrap_or_default();
        let leases = kept(request, lost);
        // A lane that was lost and gained anew meanwhile was read then.
        let lanes: BTreeSet<Lane> =
            loaded.lanes.iter().filter(|it| leases.contains(it)).map(|it| it.lane).collect();
        let (now, mut book) = (self.now(), self.book());
        let own = |position: &Position| Some((*position, book.get(*position)?.clone()));
        let own: Vec<(Position, AsideRow)> = written.iter().filter_map(own).collect();
        book.forget(|lane| lanes.contains(&lane));
        let is_kept = |record: &Record| {
            lanes.contains(&record.row.lane) && !written.contains(&record.position)
        };
        for record in loaded.records.into_iter().filter(is_kept) {
            self.sizes().note(&record.row.row, record.row.lane, record.bytes);
            book.insert(record.position, record.row);
        }
        own.into_iter().for_each(|(position, row)| book.insert(position, row));
        lanes.iter().for_each(|lane| drop(book.gain(*lane, &request.routes, now)));
    }

    pub(crate) async fn give_back(&self, request: &GiveBack) -> Result<(), StoreError> {
        const OPERATION: &str = "give back lanes";
        let mut relay = self.relay.lock().await;
        let mut lanes = request.lanes.clone();
        if request.ends {
            lanes.extend(relay.loading.take().into_iter().flat_map(|loading| loading.lanes));
        }
        let is_given = |lane: Lane| lanes.iter().any(|lease| lease.lane == lane);
        self.tenure().give_back(&lanes);
        self.book().forget(is_given);
        self.sizes().forget(is_given);
        self.finder().forget(is_given);
        loop {
            let leases = self.client.leases(OPERATION).await?;
            let change = Change::give_back(&request.relay.0, &leases, &lanes, request.ends);
            if self.client.change_leases(OPERATION, change).await?.is_some() {
                break;
            }
        }
        if request.ends {
            relay.beat = None;
            relay.reloading = None;
        }
        Ok(())
    }
}

/// What a relay holds still.
fn kept(request: &Share, lost: &[Lane]) -> Vec<LaneLease> {
    request.held.iter().filter(|lease| !lost.contains(&lease.lane)).copied().collect()
}

/// Whether what waits must be read again because people have decided about dead messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reload {
    /// Nobody has decided since it was read.
    Unneeded,
    /// Lanes that were gained are still being read: afterwards.
    Later,
    Now,
}

/// `known` is how often people had decided when it was read last; `None` if nothing was read yet.
fn next_reload(known: Option<i64>, now: i64, is_loading: bool) -> Reload {
    match known {
        Some(known) if known != now && is_loading => Reload::Later,
        Some(known) if known != now => Reload::Now,
        _ => Reload::Unneeded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was decided while lanes are being read must not be forgotten when that ends.
    #[test]
    fn a_decision_is_heeded_as_soon_as_nothing_is_being_read() {
        assert_eq!(next_reload(None, 5, true), Reload::Unneeded, "it is read for the first time");
        assert_eq!(next_reload(Some(5), 5, true), Reload::Unneeded);
        assert_eq!(next_reload(Some(5), 6, true), Reload::Later);
        assert_eq!(next_reload(Some(5), 6, false), Reload::Now);
    }
}
