//! Lanes for relays: one item that everybody writes, each on condition that nobody else has.

use super::{
    Client,
    table::{Leases, Loaded},
};
use crate::relay::history::Event;
use std::{collections::BTreeMap, time::Duration};
use tidegate_core::{
    Class, Fence, Kind, Position, StoreError,
    outbox::{
        Gained, GiveBack, LANES, Lane, LaneLease, Route, Share, Shared,
        by_state::{AsideBook, AsideRow},
    },
};

/// How often somebody else may be first.
const TRIES: usize = 20;

/// What a relay gets when its write succeeds.
struct Split {
    gained: Vec<LaneLease>,
    lost: Vec<Lane>,
    surplus: usize,
    relays: usize,
}

impl Client {
    pub(super) async fn share(&self, request: Share) -> Result<Shared, StoreError> {
        let began = self.now();
        for _ in 0..TRIES {
            let mut leases = self.leases().await?;
            let split = self.split(&mut leases, &request);
            let put = self.request("lease", |table| {
                let done = table.put_leases(leases);
                if done {
                    self.note_split(&request, &split);
                }
                done
            });
            if put.await? {
                return self.take_over(request, split, began).await;
            }
        }
        let message = "others were first, again and again";
        Err(StoreError::new(Kind::Unreachable, Class::Transient, "share", message))
    }

    fn note_split(&self, request: &Share, split: &Split) {
        if !request.held.is_empty() {
            self.note(Event::Renewed);
        }
        split.gained.iter().for_each(|lease| self.note(Event::Gained(*lease)));
    }

    /// Who lives, by what this client has seen.
    fn look(&self, leases: &Leases, now: Duration) -> Vec<String> {
        let seen = &mut self.own().seen;
        seen.retain(|relay, _| leases.relays.contains_key(relay));
        let alive = leases.relays.iter().filter(|(relay, (beat, lease))| {
            let known = seen.entry((*relay).clone()).or_insert((*beat, now));
            if known.0 != *beat {
                *known = (*beat, now);
            }
            now.saturating_sub(known.1) < *lease
        });
        alive.map(|(relay, _)| relay.clone()).collect()
    }

    /// Writes down that a relay lives, and gives it its share.
    fn split(&self, leases: &mut Leases, request: &Share) -> Split {
        let (name, alive) = (&request.relay.0, self.look(leases, self.now()));
        leases.version += 1;
        let beat = leases.relays.get(name).map_or(0, |(beat, _)| *beat);
        leases.relays.retain(|relay, _| alive.contains(relay));
        leases.relays.insert(name.clone(), (beat + 1, request.lease));
        let is_kept = |lease: &&LaneLease| leases.holds(**lease);
        let (kept, lost): (Vec<&LaneLease>, Vec<_>) = request.held.iter().partition(is_kept);
        let kept: Vec<Lane> = kept.iter().map(|lease| lease.lane).collect();
        let share = usize::from(LANES).div_ceil(leases.relays.len());
        leases.lanes.retain(|lane, (holder, _)| holder != name || kept.contains(lane));
        // What a relay had that is gone is its own until somebody takes it.
        let is_free = |lane: &Lane| {
            leases.lanes.get(lane).is_none_or(|(holder, _)| !leases.relays.contains_key(holder))
        };
        let free: Vec<Lane> = Lane::all().filter(is_free).collect();
        let mut gained = Vec::new();
        for lane in free.into_iter().take(share.saturating_sub(kept.len())) {
            leases.last_fence += 1;
            let fence = Fence(leases.last_fence);
            leases.lanes.insert(lane, (name.clone(), fence));
            gained.push(LaneLease { lane, fence });
        }
        Split {
            gained,
            lost: lost.iter().map(|lease| lease.lane).collect(),
            surplus: kept.len().saturating_sub(share),
            relays: leases.relays.len(),
        }
    }

    /// Reads what was set aside in lanes that were gained.
    async fn take_over(
        &self,
        request: Share,
        split: Split,
        began: Duration,
    ) -> Result<Shared, StoreError> {
        let lanes: Vec<Lane> = split.gained.iter().map(|lease| lease.lane).collect();
        let loaded = match lanes.is_empty() {
            true => (Vec::new(), Vec::new()),
            false => self.request("load", |table| table.load(&lanes)).await?,
        };
        let is_new = !split.gained.is_empty();
        let shared = self.taken_over(request, split, loaded, began);
        if is_new {
            self.write_through().await;
        }
        Ok(shared)
    }

    fn taken_over(&self, request: Share, split: Split, loaded: Loaded, began: Duration) -> Shared {
        let now = self.now();
        let mut own = self.own();
        own.routes = request.routes;
        let kept = request.held.iter().filter(|lease| !split.lost.contains(&lease.lane));
        let mut held: BTreeMap<Lane, (Fence, Duration)> = BTreeMap::new();
        for lease in kept {
            let since = own.lanes.get(&lease.lane).map_or(now, |(_, since)| *since);
            held.insert(lease.lane, (lease.fence, since));
        }
        held.extend(split.gained.iter().map(|lease| (lease.lane, (lease.fence, now))));
        own.forget(|lane| !held.contains_key(&lane));
        (own.lanes, own.until) = (held, began + request.lease);
        let last = last_positions(&loaded.0);
        own.load(loaded.0, loaded.1, now);
        let routes = own.routes.clone();
        let book = &mut own.book;
        let gained = split.gained.iter().map(|lease| gain(book, *lease, &last, &routes, now));
        Shared {
            gained: gained.collect(),
            lost: split.lost,
            surplus: split.surplus,
            relays: split.relays,
            ..Shared::default()
        }
    }

    pub(super) async fn give_back(&self, request: GiveBack) -> Result<(), StoreError> {
        for _ in 0..TRIES {
            let mut leases = self.leases().await?;
            leases.version += 1;
            let held: Vec<LaneLease> =
                request.lanes.iter().filter(|lease| leases.holds(**lease)).copied().collect();
            held.iter().for_each(|lease| drop(leases.lanes.remove(&lease.lane)));
            if request.ends {
                leases.relays.remove(&request.relay.0);
            }
            let put = self.request("give back", |table| {
                let done = table.put_leases(leases);
                if done {
                    held.iter().for_each(|lease| self.note(Event::GivenBack(*lease)));
                }
                done
            });
            if put.await? {
                let mut own = self.own();
                own.lanes.retain(|lane, _| request.lanes.iter().all(|it| it.lane != *lane));
                own.forget(|lane| request.lanes.iter().any(|it| it.lane == lane));
                return Ok(());
            }
        }
        let message = "others were first, again and again";
        Err(StoreError::new(Kind::Unreachable, Class::Transient, "give back", message))
    }
}

fn last_positions(rows: &[(Position, AsideRow)]) -> BTreeMap<Lane, Position> {
    let mut last = BTreeMap::new();
    for (position, row) in rows {
        let known = last.entry(row.lane).or_insert(*position);
        *known = (*known).max(*position);
    }
    last
}

fn gain(
    book: &mut AsideBook,
    lease: LaneLease,
    last: &BTreeMap<Lane, Position>,
    routes: &[Route],
    now: Duration,
) -> Gained {
    let cursor = last.get(&lease.lane).copied().unwrap_or_default().0;
    let (lags, before, aside) = Default::default();
    let held = book.gain(lease.lane, routes, now);
    Gained { lease, cursor, lags, before, held, aside }
}
