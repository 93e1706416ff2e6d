//! A small table and a relay, through random shares, readings, settlements and losses.

use super::*;
use proptest::{prelude::*, test_runner::TestCaseError};

const FEW: u16 = 4;

/// What happens next. Lanes are bits of a mask.
#[derive(Clone, Debug)]
enum Step {
    /// Somebody writes a message.
    Write(u16),
    /// Some of the lanes that are held are lost, and some of the others gained. There, others have stored positions
    /// since, which may be of a version that knew no lanes in them.
    Share { lost: u16, gained: u16, stored: i64 },
    /// The relay gives lanes back.
    GiveBack(u16),
    /// The store is asked. What it says arrives later.
    Ask { most: usize },
    /// The answer arrives.
    Read,
    /// Of what was handed out, some is done and some is set aside; the outcome may be lost on the way.
    Settle { done: u64, aside: u64, is_heard: bool },
    /// Somebody else takes lanes over, of which the relay does not know yet.
    Steal(u16),
}

fn step() -> impl Strategy<Value = Step> {
    let lanes = 0..1_u16 << FEW;
    let stored = prop_oneof![Just(0), 1..1_000_i64];
    prop_oneof![
        4 => (0..FEW).prop_map(Step::Write),
        2 => (lanes.clone(), lanes.clone(), stored)
            .prop_map(|(lost, gained, stored)| Step::Share { lost, gained, stored }),
        1 => lanes.clone().prop_map(Step::GiveBack),
        3 => (0..4_usize).prop_map(|most| Step::Ask { most }),
        3 => Just(Step::Read),
        3 => (any::<u64>(), any::<u64>(), any::<bool>())
            .prop_map(|(done, aside, is_heard)| Step::Settle { done, aside, is_heard }),
        1 => lanes.prop_map(Step::Steal),
    ]
}

/// The store: a table whose messages are pending until they are marked, and what was set aside.
#[derive(Default)]
struct Table {
    fences: BTreeMap<Lane, Fence>,
    last_fence: i64,
    pending: Vec<(Row, Lane)>,
    done: BTreeSet<Row>,
    aside: Vec<Row>,
    /// By lane, no position that is stored is behind it.
    last: BTreeMap<Lane, i64>,
}

impl Table {
    fn last(&mut self, lane: Lane) -> &mut i64 {
        self.last.entry(lane).or_default()
    }

    fn lease(&mut self, lane: Lane) -> Fence {
        self.last_fence += 1;
        self.fences.insert(lane, Fence(self.last_fence));
        Fence(self.last_fence)
    }
}

/// What was handed out.
#[derive(Clone, Debug)]
struct Open {
    lane: Lane,
    position: Position,
    row: Row,
}

/// The store, and a relay.
#[derive(Default)]
struct World {
    table: Table,
    read: ReadMessages,
    held: BTreeMap<Lane, Fence>,
    /// Neither done nor set aside.
    open: Vec<Open>,
    asked: Option<(Pending, Vec<Reader>, BTreeMap<Lane, Fence>)>,
    /// Everything that was ever handed out.
    handed_out: HashSet<(Lane, Fence, Row)>,
    positions: HashSet<Position>,
    highest: BTreeMap<Lane, Position>,
    written: usize,
}

fn of(mask: u16) -> impl Iterator<Item = Lane> {
    (0..FEW).filter(move |lane| mask & 1 << lane != 0).map(Lane)
}

impl World {
    fn take(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Write(lane) => {
                self.written += 1;
                self.table.pending.push((self.written.to_string().into(), Lane(lane)));
            }
            Step::Share { lost, gained, stored } => return self.share(lost, gained, stored),
            Step::GiveBack(lanes) => {
                let lanes: Vec<Lane> = of(lanes).filter(|it| self.held.contains_key(it)).collect();
                self.lose(&lanes);
                self.table.fences.retain(|lane, _| !lanes.contains(lane));
                self.read.forget(&lanes);
            }
            Step::Ask { most } => self.ask(most),
            Step::Read => return self.take_in(),
            Step::Settle { done, aside, is_heard } => return self.settle(done, aside, is_heard),
            Step::Steal(lanes) => {
                for lane in of(lanes) {
                    self.table.lease(lane);
                }
            }
        }
        Ok(())
    }

    fn lose(&mut self, lanes: &[Lane]) {
        self.held.retain(|lane, _| !lanes.contains(lane));
        self.open.retain(|open| !lanes.contains(&open.lane));
    }

    fn share(&mut self, lost: u16, wanted: u16, stored: i64) -> Result<(), TestCaseError> {
        let lease = |(lane, fence): (&Lane, &Fence)| LaneLease { lane: *lane, fence: *fence };
        let held: Vec<LaneLease> = self.held.iter().map(lease).collect();
        let is_lost = |it: &&LaneLease| {
            self.table.fences.get(&it.lane) != Some(&it.fence)
                || of(lost).any(|lane| lane == it.lane)
        };
        let lost: Vec<Lane> = held.iter().filter(is_lost).map(|it| it.lane).collect();
        self.lose(&lost);
        let mut shared = Shared { lost, ..Shared::default() };
        for lane in of(wanted).filter(|lane| !self.held.contains_key(lane)) {
            *self.table.last(lane) += stored;
            let (fence, cursor) = (self.table.lease(lane), *self.table.last(lane));
            shared.gained.push(gained(lane.0, fence.0, cursor));
        }
        self.read.shared(&held, &mut shared);
        for Gained { lease, cursor, .. } in &shared.gained {
            prop_assert!(
                *cursor >= *self.table.last(lease.lane),
                "it begins behind what is stored"
            );
            self.held.insert(lease.lane, lease.fence);
        }
        Ok(())
    }

    fn ask(&mut self, most: usize) {
        let lanes: Vec<u16> = self.held.keys().map(|lane| lane.0).collect();
        let (known, leases) = self.read.known();
        let pending = self.table.pending.iter();
        let unknown: Vec<&(Row, Lane)> = pending.filter(|(row, _)| !known.contains(row)).collect();
        let messages = unknown.iter().take(most).map(|(row, lane)| message(row, lane.0)).collect();
        let reading = PendingReading { messages, more: unknown.len() > most };
        let pending = Pending { readings: vec![reading], ..Pending::default() };
        self.asked = Some((pending, vec![reader(&lanes)], leases));
    }

    fn take_in(&mut self) -> Result<(), TestCaseError> {
        let Some((pending, readers, leases)) = self.asked.take() else { return Ok(()) };
        let claim = self.read.take_in(pending, &readers, &leases);
        let reading = &claim.readings[0];
        for Message { position, lane, name, .. } in &reading.messages {
            let (position, lane, row) = (*position, *lane, Row::from(name.as_str()));
            // A relay that has just lost a lane by a settlement takes nothing in that it asked for before.
            let Some(fence) = self.held.get(&lane).copied() else { continue };
            prop_assert_eq!(Some(&fence), leases.get(&lane), "asked for under another lease");
            let is_new = self.handed_out.insert((lane, fence, row.clone()));
            prop_assert!(is_new, "{row} was handed out twice under one lease");
            prop_assert!(self.positions.insert(position), "{position} was given out twice");
            let stored = *self.table.last(lane);
            prop_assert!(position.0 > stored, "{position} may be stored: see {stored}");
            let before = self.highest.insert(lane, position);
            prop_assert!(before < Some(position), "{position} came after {before:?}");
            prop_assert!(position.0 <= reading.read_to);
            self.open.push(Open { lane, position, row });
        }
        Ok(())
    }

    fn settle(&mut self, done: u64, aside: u64, is_heard: bool) -> Result<(), TestCaseError> {
        let leases: Vec<(u16, i64)> = self.held.iter().map(|(lane, it)| (lane.0, it.0)).collect();
        let chosen = |mask: u64| {
            let all = self.open.iter().enumerate();
            all.filter(move |(n, _)| mask & 1 << (n % 64) != 0).map(|(_, open)| open)
        };
        let finished: Vec<(u16, Position)> =
            chosen(done).map(|open| (open.lane.0, open.position)).collect();
        let set = |Open { lane, position, .. }: &Open| SetAside {
            lane: *lane,
            position: *position,
            topic: "t".to_owned(),
            key: None,
            sink: "s".to_owned(),
            aside: Aside::Behind,
        };
        let aside = chosen(aside & !done).map(set).collect();
        let settlement = Settlement { aside, ..settlement(&leases, &finished) };
        let mut settled = self.mark(&settlement)?;
        if !is_heard {
            // The same is sent again.
            settled = self.mark(&settlement)?;
        }
        self.read.marked(&settlement, &settled);
        self.lose(&settled.late);
        let finished = settlement.done.iter().map(|(_, position)| *position);
        let closed: HashSet<Position> =
            finished.chain(settlement.aside.iter().map(|set| set.position)).collect();
        self.open.retain(|open| !closed.contains(&open.position));
        Ok(())
    }

    /// What the store makes of a settlement. Lanes that others have are late.
    fn mark(&mut self, settlement: &Settlement) -> Result<Settled, TestCaseError> {
        let marks = self.read.marks(settlement);
        let is_late = |it: &&LaneLease| self.table.fences.get(&it.lane) != Some(&it.fence);
        let late: Vec<Lane> = marks.lanes.iter().filter(is_late).map(|it| it.lane).collect();
        prop_assert!(marks.aside_done.is_empty(), "what was read is marked by its row");
        let of_position = |position: Position| {
            self.open.iter().find(|open| open.position == position).map(|open| open.row.clone())
        };
        let finished = settlement.done.iter().filter_map(|(_, position)| of_position(*position));
        let rows: Vec<Row> = marks.done.iter().map(|(_, row)| row.clone()).collect();
        prop_assert_eq!(&rows, &finished.collect::<Vec<_>>());
        let still_pending =
            |table: &Table, row: &Row| table.pending.iter().any(|(it, _)| it == row);
        for (lane, row) in marks.done.iter().filter(|(lane, _)| !late.contains(lane)) {
            prop_assert!(self.handed_out.iter().any(|it| it.0 == *lane && it.2 == *row));
            self.table.done.insert(row.clone());
        }
        for (row, set) in marks.aside.iter().filter(|(_, set)| !late.contains(&set.lane)) {
            prop_assert_eq!(row, &of_position(set.position));
            prop_assert!(set.position <= marks.last);
            self.table.aside.extend(row.clone().filter(|row| still_pending(&self.table, row)));
        }
        let Table { pending, done, aside, .. } = &mut self.table;
        pending.retain(|(row, _)| !done.contains(row) && !aside.contains(row));
        for lease in marks.lanes.iter().filter(|it| !late.contains(&it.lane)) {
            let last = self.table.last(lease.lane);
            *last = marks.last.0.max(*last);
        }
        Ok(Settled { late, ..Settled::default() })
    }

    /// All that is pending is delivered in the end, whatever was read before.
    fn finish(&mut self) -> Result<(), TestCaseError> {
        self.take_in()?;
        self.share(0, u16::MAX, 0)?;
        self.ask(usize::MAX);
        self.take_in()?;
        self.settle(u64::MAX, 0, true)?;
        prop_assert!(self.table.pending.is_empty(), "lost: {:?}", self.table.pending);
        let aside: BTreeSet<Row> = self.table.aside.iter().cloned().collect();
        prop_assert_eq!(self.table.aside.len(), aside.len());
        prop_assert!(aside.is_disjoint(&self.table.done));
        prop_assert_eq!(aside.len() + self.table.done.len(), self.written);
        prop_assert!(self.read.known().0.is_empty(), "nothing is remembered for ever");
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn whatever_happens_nothing_is_lost_or_handed_out_twice_under_one_lease(
        steps in prop::collection::vec(step(), 1..60)
    ) {
        let mut world = World::default();
        for step in steps {
            world.take(step)?;
        }
        world.finish()?;
    }
}
