//! Marking, one message of a lane at a time: any number of these may be done when something goes wrong.

use super::{Client, Shortcut, number, table::Written};
use crate::relay::history::Event;
use futures_util::future::try_join_all;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_core::{
    Position, StoreError,
    outbox::{
        Lane, LaneLease, SetAside, Settled,
        by_state::{AsideRow, Marks, Row},
    },
};

/// What was written so far.
#[derive(Default)]
struct Progress {
    leases: BTreeMap<Lane, LaneLease>,
    late: BTreeSet<Lane>,
    set: Vec<(Position, AsideRow)>,
}

impl Client {
    /// What is done is marked before anything is set aside: otherwise, after a crash, the rest of a key would wait
    /// before what was delivered before it.
    pub(super) async fn settle(&self, marks: Marks) -> Result<Settled, StoreError> {
        let mut progress = Progress {
            leases: marks.lanes.iter().map(|lease| (lease.lane, *lease)).collect(),
            ..Progress::default()
        };
        self.own().writes += 1;
        self.find_late(&mut progress).await?;
        match self.is(Shortcut::AsideBeforeDone) {
            true => {
                self.set_aside(&marks, &mut progress).await?;
                self.mark_done(&marks, &mut progress).await?;
            }
            false => {
                self.mark_done(&marks, &mut progress).await?;
                self.set_aside(&marks, &mut progress).await?;
            }
        }
        let freed = {
            let mut own = self.own();
            own.writes += 1;
            // A lane that was gained anew meanwhile was loaded with all that was written before.
            let holds = |lane: Lane| {
                let lease = progress.leases.get(&lane);
                lease.is_some_and(|lease| own.holds(*lease)) && !progress.late.contains(&lane)
            };
            let done: Vec<Position> =
                marks.aside_done.iter().filter(|it| holds(it.0)).map(|it| it.1).collect();
            let set: Vec<_> = progress.set.into_iter().filter(|(_, row)| holds(row.lane)).collect();
            own.stored.extend(set.iter().cloned());
            done.iter().for_each(|position| drop(own.stored.remove(position)));
            let now = self.now();
            own.book.settle(set, done, now)
        };
        self.write_through().await;
        Ok(Settled { late: progress.late.into_iter().collect(), freed })
    }

    async fn find_late(&self, progress: &mut Progress) -> Result<(), StoreError> {
        let leases = self.leases().await?;
        let lost = progress.leases.values().filter(|lease| !leases.holds(**lease));
        progress.late.extend(lost.map(|lease| lease.lane));
        Ok(())
    }

    async fn mark_done(&self, marks: &Marks, progress: &mut Progress) -> Result<(), StoreError> {
        let mut by_lane: BTreeMap<Lane, Vec<&Row>> = BTreeMap::new();
        for (lane, row) in &marks.done {
            by_lane.entry(*lane).or_default().push(row);
        }
        if self.is(Shortcut::LastMarkFirst) {
            by_lane.values_mut().for_each(|rows| rows.reverse());
        }
        let leases = progress.leases.clone();
        let lanes = by_lane.into_iter().filter(|(lane, _)| !progress.late.contains(lane));
        let marks_of =
            lanes.filter_map(|(lane, rows)| Some(self.mark_lane(*leases.get(&lane)?, rows)));
        for lane in try_join_all(marks_of).await? {
            progress.late.extend(lane);
        }
        for (lane, position) in &marks.aside_done {
            let row = self.own().book.get(*position).map(|row| row.row.clone());
            let (Some(row), Some(lease)) = (row, progress.leases.get(lane).copied()) else {
                continue;
            };
            if let Written::Late = self.request("finish", |table| table.finish(lease, &row)).await?
            {
                progress.late.insert(*lane);
            }
        }
        Ok(())
    }

    /// Marks what is done of a lane, one after the other. Returns the lane if it was lost meanwhile.
    async fn mark_lane(
        &self,
        lease: LaneLease,
        rows: Vec<&Row>,
    ) -> Result<Option<Lane>, StoreError> {
        for row in rows {
            // A mark is not fenced. Whoever gets the lane next waits for one that is on its way, and for no other.
            if let Some(wire) = &self.wire {
                wire.thawed().await;
            }
            if self.now() > self.own().until && !self.leases().await?.holds(lease) {
                return Ok(Some(lease.lane));
            }
            self.request("mark", |table| table.mark(row)).await?;
            self.is_over([row.clone()]);
        }
        Ok(None)
    }

    async fn set_aside(&self, marks: &Marks, progress: &mut Progress) -> Result<(), StoreError> {
        let mut aside: Vec<&(Option<Row>, SetAside)> = marks.aside.iter().collect();
        if self.is(Shortcut::LastAsideFirst) {
            aside.reverse();
        }
        for (row, set) in aside {
            let known = self.own().book.get(set.position).map(|row| row.row.clone());
            let Some(row) = row.clone().or(known) else { continue };
            let Some(lease) = progress.leases.get(&set.lane).copied() else { continue };
            let (now, marked) = (self.now(), marks.number);
            let written = self.request("set aside", |table| {
                let written = table.set_aside(lease, marked, &row, set, now);
                if let Written::Is(Some((_, _, true))) = &written {
                    self.note_aside(&row, set);
                }
                written
            });
            match written.await? {
                Written::Late => drop(progress.late.insert(set.lane)),
                Written::Is(is) => {
                    progress.set.extend(is.map(|(position, aside, _)| (position, aside)));
                    self.is_over([row]);
                }
            }
        }
        Ok(())
    }

    fn note_aside(&self, row: &Row, set: &SetAside) {
        let aside = vec![(number(row), set.aside.clone())];
        let (done, late, lanes) = Default::default();
        self.note(Event::Settled { aside, done, late, lanes });
    }

    /// Writes what follows for others of a key. Nobody needs it but people: whoever has the lane next finds out again.
    pub(super) async fn write_through(&self) {
        let news: Vec<(LaneLease, Position, AsideRow)> = {
            let own = self.own();
            let changed = own.stored.iter().filter_map(|(position, stored)| {
                let row = own.book.get(*position).filter(|row| *row != stored)?;
                let (fence, _) = own.lanes.get(&row.lane)?;
                let lease = LaneLease { lane: row.lane, fence: *fence };
                Some((lease, *position, row.clone()))
            });
            changed.collect()
        };
        for (lease, position, row) in news {
            let written =
                self.request("rewrite", |table| table.rewrite(lease, position, &row)).await;
            let Ok(Written::Is(())) = written else { return };
            if let Some(stored) = self.own().stored.get_mut(&position) {
                *stored = row;
            }
        }
    }
}
