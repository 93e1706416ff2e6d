//! One look for messages: those that are outstanding, and those that were set aside and are due.

use super::{
    Seen,
    finder::Look,
    pages::{Page, Segment},
    parse,
};
use crate::{
    DynamoDb,
    aside::Place,
    item::{
        Found, Item, decode,
        name::{MESSAGE_ID, OUTSTANDING},
    },
    ticks::Ticks,
};
use futures_util::{StreamExt, TryStreamExt, future::try_join_all, stream};
use std::{
    collections::{BTreeSet, HashSet},
    time::Duration,
};
use tidegate_core::{
    Message, StoreError,
    limits::MAX_BEHIND,
    outbox::{
        Lane, Origin, Position, Reader,
        by_state::{AsideRow, Pending, PendingReading, PendingRequest},
    },
};
use tokio::time::{Instant, sleep};

const OPERATION: &str = "claim messages";

/// Messages that were set aside and are fetched at once.
const FETCHED: usize = MAX_BEHIND;

/// More than so many waiting messages are not held in memory: no more are read until some are done.
const MOST_WAITING: usize = 500_000;

/// What one look has found.
struct Harvest {
    /// Only what was created before this is taken. It was noted before the first request: one segment may be read
    /// long before another, and a message that came in between must not be taken without those before it.
    youngest: Ticks,
    /// In the order in which they are delivered, shard by shard or all together.
    seen: Vec<Seen>,
    /// When the first of those that are too young is old enough.
    next: Option<Duration>,
}

impl DynamoDb {
    pub(crate) async fn pending(&self, request: &PendingRequest) -> Result<Pending, StoreError> {
        let (due, gone, next_due) = self.due(request).await?;
        let readers = &request.claim.readers;
        let mut pending = Pending {
            readings: readers.iter().map(|_| PendingReading::default()).collect(),
            due,
            gone,
            next_due,
            ..Pending::default()
        };
        if readers.is_empty() || self.book().len() > MOST_WAITING {
            return Ok(pending);
        }
        let harvest = self.find(request).await?;
        pending.next_due = pending.next_due.into_iter().chain(harvest.next).min();
        let found = harvest.seen.len();
        let left = give_out(harvest.seen, readers, request.claim.most_bytes, &mut pending.readings);
        let wants = |topic: &str| readers.iter().any(|reader| reader.wants(topic));
        let mut finder = self.finder();
        finder.read_again(&left);
        let page = self.address().page as usize;
        let more = finder.looked(found, page, wants, Instant::now().into_std()) || !left.is_empty();
        drop(finder);
        pending.readings.iter_mut().for_each(|reading| reading.more = more);
        Ok(pending)
    }

    /// Messages that are outstanding, old enough, and new to this relay.
    async fn find(&self, request: &PendingRequest) -> Result<Harvest, StoreError> {
        let pause = self.finder().pause(Instant::now().into_std());
        if !pause.is_zero() {
            sleep(pause).await;
        }
        let readers = &request.claim.readers;
        let wants = |topic: &str| readers.iter().any(|reader| reader.wants(topic));
        let segments = self.address().scan_concurrency;
        let look = self.finder().look(segments, wants, Instant::now().into_std());
        let youngest = self.address().youngest();
        let seen = match look {
            Look::Scan { segments } => self.scan(segments, request).await?,
            Look::Shards { shards, scan } => {
                self.read_shards(shards, scan, youngest, request).await?
            }
        };
        self.sift(Harvest { youngest, seen, next: None }, request).await
    }

    /// Looks at all that is outstanding, if it fits into one page.
    async fn scan(&self, segments: u32, request: &PendingRequest) -> Result<Vec<Seen>, StoreError> {
        let limit = self.address().page.div_ceil(segments);
        let segment =
            |number| Segment { number, of: segments, from: None, limit, names_only: false };
        let pages = (0..segments).map(|number| self.client.scan_outstanding(segment(number)));
        let pages: Vec<Page> = try_join_all(pages).await?;
        let is_all = pages.iter().all(|page| page.next.is_none());
        let mut seen: Vec<Seen> = pages.into_iter().flat_map(|page| page.seen).collect();
        let mut finder = self.finder();
        if is_all {
            finder.saw_all(seen.is_empty());
            seen.sort_by(|one, other| {
                (one.outstanding, &one.found.id).cmp(&(other.outstanding, &other.found.id))
            });
            return Ok(seen);
        }
        let new: Vec<Seen> = finder.unknown(&seen, &request.known).into_iter().cloned().collect();
        finder.saw_some(new.iter());
        // A message without a shard is in no order, and is found by scans only.
        Ok(new.into_iter().filter(|seen| seen.found.shard.is_empty()).collect())
    }

    /// Reads shards in order, and goes on with the scan for others.
    async fn read_shards(
        &self,
        shards: Vec<(String, Option<Item>)>,
        scan: Option<Option<Item>>,
        youngest: Ticks,
        request: &PendingRequest,
    ) -> Result<Vec<Seen>, StoreError> {
        if let Some(from) = scan {
            let limit = self.address().page;
            let segment = Segment { number: 0, of: 1, from, limit, names_only: true };
            let page = self.client.scan_outstanding(segment).await?;
            let mut finder = self.finder();
            let new: Vec<Seen> =
                finder.unknown(&page.seen, &request.known).into_iter().cloned().collect();
            finder.scanned(new.iter(), page.next);
        }
        let most: usize = request.claim.readers.iter().map(|reader| reader.most).sum();
        let limit =
            most.div_ceil(shards.len().max(1)).clamp(1, self.address().page as usize) as u32;
        let at_once = shards.len().max(1);
        let read = |(shard, from): (String, Option<Item>)| async move {
            let page = self.client.query_outstanding(&shard, from, youngest, limit).await?;
            Ok::<_, StoreError>((shard, page))
        };
        let pages: Vec<(String, Page)> =
            stream::iter(shards).map(read).buffered(at_once).try_collect().await?;
        let mut seen = Vec::new();
        let mut finder = self.finder();
        for (shard, page) in pages {
            finder.read(&shard, page.next);
            seen.extend(page.seen);
        }
        Ok(seen)
    }

    /// Leaves out what is known, too young, of other relays, or done already although an index shows it.
    async fn sift(
        &self,
        mut harvest: Harvest,
        request: &PendingRequest,
    ) -> Result<Harvest, StoreError> {
        let readers = &request.claim.readers;
        let lanes: HashSet<Lane> = readers
            .iter()
            .flat_map(|reader| reader.places.iter().map(|place| place.lane))
            .collect();
        let (now, youngest) = (Ticks::now(), harvest.youngest);
        let has_all = self.index_has_all(&self.address().indexes.outstanding).await?
            && self.index_has_all(&self.address().indexes.outstanding_all).await?;
        let mut next = None::<Duration>;
        let verify: Vec<String> = {
            let finder = self.finder();
            harvest.seen.retain(|seen| {
                let is_new =
                    !request.known.contains(&seen.row) && !finder.recent.contains(&seen.row);
                let is_old = seen.outstanding <= youngest;
                if is_new && !is_old {
                    let wait = seen.outstanding.after(self.address().min_age).since(now);
                    next = Some(next.map_or(wait, |next| next.min(wait)));
                }
                // Without the whole message, its lane is not known yet.
                is_new && is_old && (!has_all || lanes.contains(&seen.found.lane))
            });
            let doubtful = |seen: &&Seen| !has_all || finder.must_verify(seen.found.lane);
            harvest.seen.iter().filter(doubtful).map(|seen| seen.found.id.clone()).collect()
        };
        harvest.next = next;
        if verify.is_empty() {
            return Ok(harvest);
        }
        let attributes = has_all.then_some([MESSAGE_ID, OUTSTANDING]);
        let attributes = attributes.as_ref().map(|names| names.as_slice());
        let mut present = self.client.get_all(OPERATION, &verify, attributes).await?;
        let verify: HashSet<String> = verify.into_iter().collect();
        harvest.seen.retain_mut(|seen| {
            if !verify.contains(&seen.found.id) {
                return true;
            }
            let Some(found) = present.remove(&seen.found.id).and_then(|item| decode(&item)) else {
                return false;
            };
            let is_outstanding = found.outstanding == Some(seen.outstanding);
            if !has_all {
                seen.found = found;
            }
            is_outstanding && lanes.contains(&seen.found.lane)
        });
        Ok(harvest)
    }

    /// Messages that were set aside and are due, those that are gone, and when the next is due.
    async fn due(
        &self,
        request: &PendingRequest,
    ) -> Result<(Vec<Message>, Vec<(Lane, Position)>, Option<Duration>), StoreError> {
        let now = self.now();
        let (rows, next_due) = {
            let book = self.book();
            let due = book.due(&request.claim, now);
            let row = |position: Position| Some((position, book.get(position)?.clone()));
            let rows: Vec<(Position, AsideRow)> = due.into_iter().filter_map(row).collect();
            (rows, book.next_due(&request.claim, now))
        };
        let (mut due, mut gone, mut bytes) = (Vec::new(), Vec::new(), 0);
        'all: for rows in rows.chunks(FETCHED) {
            let id = |row: &AsideRow| parse(&row.row).map_or("", |(_, id)| id).to_owned();
            let ids: Vec<String> = rows.iter().map(|(_, row)| id(row)).collect();
            let mut items = self.client.get_all(OPERATION, &ids, None).await?;
            for (position, row) in rows {
                let found = items.remove(&id(row)).and_then(|item| decode(&item));
                match found.filter(|found| is_aside(found, row.lane, *position)) {
                    None => gone.push((row.lane, *position)),
                    Some(found) => {
                        bytes += found.message.payload.len();
                        if bytes > request.claim.most_bytes && !due.is_empty() {
                            break 'all;
                        }
                        due.push(found.message(*position, origin(row)));
                    }
                }
            }
        }
        Ok((due, gone, next_due))
    }
}

/// Whether a message is still set aside there. Somebody else may have delivered or removed it.
fn is_aside(found: &Found, lane: Lane, position: Position) -> bool {
    let place = found.aside.as_deref().and_then(Place::parse);
    let expected = Place::of(crate::aside::Part::Waiting, lane, position);
    !found.is_delivered && place.is_some_and(|place| place == expected)
}

fn origin(row: &AsideRow) -> Origin {
    let (attempts, sink, waited_for) = (row.attempts, row.sink.clone(), row.state);
    Origin::Aside { attempts, sink, waited_for }
}

/// Gives messages to the readers that want them, in their order, up to what each takes. Returns the shards of which
/// some are left.
fn give_out(
    seen: Vec<Seen>,
    readers: &[Reader],
    most_bytes: usize,
    readings: &mut [PendingReading],
) -> BTreeSet<String> {
    let (now, mut left) = (Ticks::now(), BTreeSet::new());
    let mut bytes = vec![0; readers.len()];
    let mut is_full = vec![false; readers.len()];
    for Seen { row, found, .. } in seen {
        let wants = |reader: &Reader| reader.wants(&found.message.topic);
        let Some(n) = readers.iter().position(wants) else { continue };
        bytes[n] += found.message.payload.len();
        let reading = &mut readings[n];
        let is_first = reading.messages.is_empty();
        // Once one was left, all that follow are: they may be of its key.
        is_full[n] |=
            !is_first && (reading.messages.len() >= readers[n].most || bytes[n] > most_bytes);
        if is_full[n] {
            left.insert(found.shard);
            continue;
        }
        reading.messages.push((row, message(found, now)));
    }
    left
}

fn message(found: Found, now: Ticks) -> Message {
    let due_in = found.not_before.map(|at| at.since(now)).filter(|wait| !wait.is_zero());
    found.message(Position::default(), Origin::Lane { due_in })
}
