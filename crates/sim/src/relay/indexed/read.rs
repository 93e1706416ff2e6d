//! Reading what is pending and what is due.

use super::{
    Client, REQUEST, SLACK, Shortcut, number,
    table::{Item, SHARDS},
};
use crate::relay::history::Event;
use std::{collections::HashSet, time::Duration};
use tidegate_core::{
    Message, Position, StoreError,
    outbox::{
        ClaimRequest, Lane, Origin, Reader,
        by_state::{AsideRow, Pending, PendingReading, PendingRequest, Row},
    },
};

/// What the index has shown of what is wanted, in order.
#[derive(Default)]
struct Found {
    items: Vec<Item>,
    /// Behind this, something may be missing.
    horizon: Option<(Duration, Row)>,
}

impl Client {
    pub(super) async fn read(&self, request: PendingRequest) -> Result<Pending, StoreError> {
        let began = self.now();
        self.own().over.retain(|_, until| *until > began);
        self.reload().await?;
        self.write_through().await;
        let due = self.read_due(&request.claim).await?;
        let mut found = match request.claim.readers.is_empty() {
            true => Found::default(),
            false => self.find(&request, began).await?,
        };
        let young = self.leave_out(&mut found, began);
        self.verify(&mut found, began).await?;
        let readings: Vec<PendingReading> =
            request.claim.readers.iter().map(|it| choose(&found, it, &request.claim)).collect();
        if self.is(Shortcut::MarkedFirst) {
            for (row, _) in readings.iter().flat_map(|reading| &reading.messages) {
                self.request("mark", |table| table.mark(row)).await?;
            }
        }
        let read = readings.iter().flat_map(|reading| &reading.messages).map(|(_, it)| it);
        let claimed: Vec<(Position, Lane)> =
            read.chain(&due).map(|it| (number(&it.name.as_str().into()), it.lane)).collect();
        if !claimed.is_empty() {
            self.note(Event::Claimed(claimed));
        }
        let next_due = self.next_look(&request.claim, began).into_iter().chain(young).min();
        Ok(Pending { readings, due, next_due, ..Pending::default() })
    }

    /// When something is due, or when all is in the index that was published before lanes were gained.
    fn next_look(&self, claim: &ClaimRequest, began: Duration) -> Option<Duration> {
        let own = self.own();
        let gained = own.lanes.values().map(|(_, since)| *since).max().unwrap_or_default();
        let shown = self.plan.lag + self.min_age();
        let shown = gained + if shown.is_zero() { shown } else { shown + SLACK };
        let unseen = (began < shown).then(|| shown - began);
        own.book.next_due(claim, self.now()).into_iter().chain(unseen).min()
    }

    /// People may have changed what was set aside.
    async fn reload(&self) -> Result<(), StoreError> {
        let (known, writes) = {
            let own = self.own();
            (own.changes.clone(), own.writes)
        };
        let (rows, changes) = self.request("load", |table| table.load_changed(&known)).await?;
        let now = self.now();
        let mut own = self.own();
        // What was written meanwhile is not in what was read: the next look will find it.
        if !changes.is_empty() && own.writes == writes {
            own.load(rows, changes, now);
        }
        Ok(())
    }

    async fn read_due(&self, claim: &ClaimRequest) -> Result<Vec<Message>, StoreError> {
        let wanted: Vec<(Position, AsideRow)> = {
            let own = self.own();
            let due = own.book.due(claim, self.now());
            due.into_iter().filter_map(|at| Some((at, own.book.get(at)?.clone()))).collect()
        };
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let found = self.request("get", |table| {
            let content = table.content();
            let item = |(at, row): (Position, AsideRow)| {
                let item = content.items.get(&row.row)?;
                let is_same = item.aside().is_some_and(|(stored, _)| stored == at);
                let AsideRow { attempts, sink, state: waited_for, .. } = row;
                let origin = Origin::Aside { attempts, sink, waited_for };
                is_same.then(|| item.message(origin))
            };
            wanted.into_iter().filter_map(item).collect::<Vec<_>>()
        });
        let mut bytes = 0;
        let fits = |message: &Message| {
            let is_first = bytes == 0;
            bytes += message.payload.len().max(1);
            is_first || bytes <= claim.most_bytes
        };
        Ok(found.await?.into_iter().take_while(fits).collect())
    }

    /// Everything that is wanted, if one page of the index has all of it; else the oldest of every part of every
    /// topic, up to where the first of these parts has more.
    async fn find(&self, request: &PendingRequest, began: Duration) -> Result<Found, StoreError> {
        let page = self.plan.page;
        let (items, is_all) = self.request("scan", |table| table.scan(page)).await?;
        let mut found = Found::default();
        if is_all {
            found.items = items.into_iter().filter(|item| self.wants(request, item)).collect();
        } else {
            let most = request.claim.readers.iter().map(|it| it.most).max().unwrap_or(1);
            let topics = self.request("topics", |table| table.topics()).await?;
            for part in topics.iter().flat_map(|topic| (0..SHARDS).map(move |at| (topic, at))) {
                self.find_part(request, (part.0, part.1), most, began, &mut found).await?;
            }
            let horizon = found.horizon.clone();
            found.items.retain(|item| horizon.as_ref().is_none_or(|it| item.place() <= *it));
        }
        found.items.sort_by_key(Item::place);
        Ok(found)
    }

    async fn find_part(
        &self,
        request: &PendingRequest,
        part: (&str, u64),
        most: usize,
        began: Duration,
        found: &mut Found,
    ) -> Result<(), StoreError> {
        let (mut after, mut wanted) = (None, 0);
        loop {
            let page = self.plan.page;
            let (items, more) =
                self.request("query", |table| table.query(part, after.as_ref(), page)).await?;
            after = items.last().map(Item::place);
            let items = items.into_iter().filter(|item| self.wants(request, item));
            let before = found.items.len();
            found.items.extend(items);
            wanted += found.items.len() - before;
            let Some(last) = after.clone().filter(|_| more) else { return Ok(()) };
            // What is too young is not read anyway.
            if last.0 + self.min_age() > began {
                return Ok(());
            }
            if wanted >= most {
                found.horizon = found.horizon.take().into_iter().chain([last]).min();
                return Ok(());
            }
        }
    }

    fn wants(&self, request: &PendingRequest, item: &Item) -> bool {
        let asks = |reader: &Reader| {
            reader.wants(&item.new.topic) && reader.places.iter().any(|it| it.lane == item.lane)
        };
        !request.known.contains(&item.row)
            && request.claim.readers.iter().any(asks)
            && !self.own().over.contains_key(&item.row)
    }

    /// Leaves out what is too young, or not due yet: set aside, it would keep its position, and go before earlier ones
    /// of its key that are read again after a crash. Returns when the first of that is to be read.
    fn leave_out(&self, found: &mut Found, began: Duration) -> Option<Duration> {
        let ready =
            |item: &Item| item.created + self.min_age().max(item.new.delay.unwrap_or_default());
        let left_out: Vec<Item> = found.items.extract_if(.., |item| ready(item) > began).collect();
        left_out.iter().map(|item| ready(item) - began).min()
    }

    /// Leaves out what is not pending any more, where a former holder may have marked it a moment ago.
    async fn verify(&self, found: &mut Found, began: Duration) -> Result<(), StoreError> {
        let doubtful: HashSet<Lane> = {
            let own = self.own();
            let is_new = |since: Duration| began <= since + REQUEST + self.plan.lag + SLACK;
            own.lanes.iter().filter(|(_, it)| is_new(it.1)).map(|(lane, _)| *lane).collect()
        };
        let doubtful = found.items.iter().filter(|item| doubtful.contains(&item.lane));
        let doubtful: Vec<Row> = doubtful.map(|item| item.row.clone()).collect();
        if doubtful.is_empty() || self.is(Shortcut::NoVerifying) {
            return Ok(());
        }
        let pending = self.request("verify", |table| table.pending(&doubtful)).await?;
        let gone: HashSet<Row> = doubtful.into_iter().filter(|it| !pending.contains(it)).collect();
        found.items.retain(|item| !gone.contains(&item.row));
        self.is_over(gone);
        Ok(())
    }

    /// These are not pending any more: the index will know in time.
    pub(super) fn is_over(&self, rows: impl IntoIterator<Item = Row>) {
        let until = self.now() + self.plan.lag + SLACK;
        self.own().over.extend(rows.into_iter().map(|row| (row, until)));
    }
}

/// What one reader gets.
fn choose(found: &Found, reader: &Reader, claim: &ClaimRequest) -> PendingReading {
    let lanes: HashSet<Lane> = reader.places.iter().map(|place| place.lane).collect();
    let wanted = |item: &&Item| lanes.contains(&item.lane) && reader.wants(&item.new.topic);
    let (mut messages, mut bytes) = (Vec::new(), 0);
    let mut more = found.horizon.is_some();
    for item in found.items.iter().filter(wanted) {
        let size = item.new.payload.len();
        let is_full = messages.len() >= reader.most;
        if is_full || !messages.is_empty() && bytes + size > claim.most_bytes {
            more = true;
            break;
        }
        bytes += size;
        messages.push((item.row.clone(), item.message(Origin::Lane { due_in: None })));
    }
    PendingReading { messages, more }
}
