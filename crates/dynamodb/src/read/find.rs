//! One look for messages that are outstanding.

use super::{
    Seen,
    backlog::{Plan, Query},
    finder::{Fates, Finder, Look},
    merge::{ShardPage, merge},
    pages::{Page, Segment},
};
use crate::{
    DynamoDb,
    item::{
        Item, decode, get_number,
        name::{MESSAGE_ID, OUTSTANDING},
    },
    ticks::Ticks,
};
use futures_util::{
    StreamExt, TryStreamExt,
    future::{try_join, try_join_all},
    stream,
};
use std::{
    collections::HashSet,
    time::{Duration, Instant},
};
use tidegate_core::{
    StoreError,
    outbox::{
        Lane,
        by_state::{PendingRequest, Row},
    },
};

pub(super) const OPERATION: &str = "claim messages";

/// Queries that are on their way at a time; the pacer may allow fewer.
const AT_ONCE: usize = 16;

/// What one look has found.
pub(super) struct Harvest {
    /// New to this relay, in the order in which they are delivered.
    pub seen: Vec<Seen>,
    /// The shards that were read.
    pub shards: Vec<ShardPage>,
    pub fates: Fates,
    /// When the first of those that must wait is old enough, or due.
    pub next: Option<Duration>,
}

/// Messages that were done a short time ago and are looked up in one look, at most.
const DOUBTS: usize = 100;

/// What is new to a relay.
struct View<'a> {
    known: &'a HashSet<Row>,
    lanes: HashSet<Lane>,
    /// Only what was created before this is taken. It was noted before the first request: one part of a look may be
    /// read long before another, and a message that came in between must not be taken without those before it.
    youngest: Ticks,
    now: Ticks,
    min_age: Duration,
}

/// What a message is to a relay.
enum Judged {
    New,
    /// Known already, done, or another relay's.
    Passed,
    /// It is left where it is for so long: it is too young …
    Young(Duration),
    /// … or not due before then.
    Later(Ticks),
    /// It was done a short time ago: either the index lags, or somebody wants it again. It is looked up after so long.
    Doubtful(Duration),
}

impl DynamoDb {
    /// Messages that are outstanding, old enough, due, and new to this relay.
    pub(super) async fn find(&self, request: &PendingRequest) -> Result<Harvest, StoreError> {
        let pause = self.finder().pause(Instant::now());
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        let readers = &request.claim.readers;
        let wants = |topic: &str| readers.iter().any(|reader| reader.wants(topic));
        let most: usize = readers.iter().map(|reader| reader.most).sum();
        let (now, address) = (Ticks::now(), self.address());
        let view = View {
            known: &request.known,
            lanes: readers.iter().flat_map(|it| it.places.iter().map(|it| it.lane)).collect(),
            youngest: address.youngest(),
            now,
            min_age: address.min_age,
        };
        let look = {
            let (mut finder, at) = (self.finder(), Instant::now());
            finder.begin(view.lanes.clone(), view.known, at);
            finder.look(address.scan_concurrency, wants, (most, address.page), (now, at))
        };
        match look {
            Look::Scan { segments } => self.scan(segments, &view).await,
            Look::Shards(plan) => self.read_shards(plan, &view).await,
        }
    }

    /// Looks at all that is outstanding, if it fits into one page.
    async fn scan(&self, segments: u32, view: &View<'_>) -> Result<Harvest, StoreError> {
        let limit = self.address().page.div_ceil(segments);
        let segment =
            |number| Segment { number, of: segments, from: None, limit, names_only: false };
        let pages = (0..segments).map(|number| self.client.scan_outstanding(segment(number)));
        let pages: Vec<Page> = try_join_all(pages).await?;
        let is_all = pages.iter().all(|page| page.next.is_none());
        let mut seen: Vec<Seen> = pages.into_iter().flat_map(|page| page.seen).collect();
        if is_all {
            self.finder().saw_all(seen.is_empty());
            seen.sort_by(|one, other| {
                (one.outstanding, &one.found.id).cmp(&(other.outstanding, &other.found.id))
            });
            return self.harvest(seen, Vec::new(), view).await;
        }
        let mut found = self.harvest(seen, Vec::new(), view).await?;
        let shards = self.address().shards;
        self.finder().saw_some(found.seen.iter(), shards, Instant::now());
        // These are a sample, in no order: what has a shard is read there.
        found.seen.retain(|seen| seen.found.shard.is_empty());
        Ok(found)
    }

    /// Reads shards in order, and goes on with the search for others.
    async fn read_shards(&self, plan: Plan, view: &View<'_>) -> Result<Harvest, StoreError> {
        let at_once = plan.queries.len().clamp(1, AT_ONCE);
        let query = async |query: Query| {
            let from = query.from.clone();
            let page =
                self.client.query_outstanding(&query.shard, from, view.youngest, query.limit);
            Ok::<_, StoreError>((page.await?, query))
        };
        let queries = stream::iter(plan.queries).map(query).buffered(at_once).try_collect();
        let (pages, passed): (Vec<(Page, _)>, _) =
            try_join(queries, self.pass(plan.page, view)).await?;
        let (mut seen, shards) =
            merge(pages.into_iter().map(|(page, query)| (query, page)).collect());
        let (mut without_shard, next) = passed;
        seen.append(&mut without_shard);
        let mut found = self.harvest(seen, shards, view).await?;
        found.next = found.next.into_iter().chain(next).min();
        Ok(found)
    }

    /// Goes on with the pass over all topics. Returns messages without a shard, which nothing else finds, and when
    /// one that is too young is old enough.
    async fn pass(
        &self,
        page: Option<Option<Item>>,
        view: &View<'_>,
    ) -> Result<(Vec<Seen>, Option<Duration>), StoreError> {
        let Some(from) = page else { return Ok(Default::default()) };
        let limit = self.address().page;
        let segment = Segment { number: 0, of: 1, from, limit, names_only: true };
        let Page { mut seen, next } = self.client.scan_outstanding(segment).await?;
        let mut finder = self.finder();
        let wait = view.sift(&finder, &mut seen, &mut Fates::default());
        let now = Instant::now();
        wait.into_iter().for_each(|wait| finder.leave(wait, now));
        finder.passed(seen.iter(), next, now);
        seen.retain(|seen| seen.found.shard.is_empty());
        Ok((seen, wait))
    }

    /// Leaves out what is not new, and what an index shows although it is done already.
    async fn harvest(
        &self,
        mut seen: Vec<Seen>,
        shards: Vec<ShardPage>,
        view: &View<'_>,
    ) -> Result<Harvest, StoreError> {
        let mut fates = Fates::default();
        let next = view.sift(&self.finder(), &mut seen, &mut fates);
        let seen = self.looked_up(seen).await?;
        Ok(Harvest { seen, shards, fates, next })
    }

    /// Looks doubtful messages up in the table, and those that were not read as a whole.
    async fn looked_up(&self, mut seen: Vec<Seen>) -> Result<Vec<Seen>, StoreError> {
        let ids = |chosen: &dyn Fn(&Seen) -> bool| -> Vec<String> {
            seen.iter().filter(|it| chosen(it)).map(|it| it.found.id.clone()).collect()
        };
        let (parts, doubtful) = {
            let finder = self.finder();
            let must_verify =
                |it: &Seen| finder.must_verify(it.found.lane) || finder.recent.contains(&it.row);
            let is_doubtful = |it: &Seen| it.is_whole && must_verify(it);
            (ids(&|it| !it.is_whole), ids(&is_doubtful))
        };
        if parts.is_empty() && doubtful.is_empty() {
            return Ok(seen);
        }
        let client = &self.client;
        let names: &[&str] = &[MESSAGE_ID, OUTSTANDING];
        let (mut whole, present) = try_join(
            client.get_all(OPERATION, &parts, None),
            client.get_all(OPERATION, &doubtful, Some(names)),
        )
        .await?;
        let doubtful: HashSet<String> = doubtful.into_iter().collect();
        let time_of = |item| get_number(item, OUTSTANDING).map(Ticks);
        let is_done = |seen: &mut Seen| {
            let id = &seen.found.id;
            if !seen.is_whole {
                let found = whole.remove(id).and_then(|item| decode(&item));
                let found = found.filter(|found| found.outstanding == Some(seen.outstanding));
                return found.map(|found| seen.found = found).is_none();
            }
            doubtful.contains(id) && present.get(id).and_then(time_of) != Some(seen.outstanding)
        };
        let done: Vec<Row> = seen.extract_if(.., is_done).map(|seen| seen.row).collect();
        let (mut finder, now) = (self.finder(), Instant::now());
        done.iter().for_each(|row| finder.recent.is_done(row, now));
        seen.iter().for_each(|seen| finder.recent.is_outstanding(&seen.row));
        Ok(seen)
    }
}

impl View<'_> {
    /// Keeps what is new. Returns when the first of those that must wait is old enough, or due.
    fn sift(&self, finder: &Finder, seen: &mut Vec<Seen>, fates: &mut Fates) -> Option<Duration> {
        let (mut next, mut doubts) = (None::<Duration>, 0);
        seen.retain(|seen| {
            let wait = match self.judge(finder, seen) {
                Judged::New => return true,
                Judged::Doubtful(wait) if wait.is_zero() && doubts < DOUBTS => {
                    doubts += 1;
                    return true;
                }
                Judged::Doubtful(wait) => wait,
                Judged::Passed => return false,
                Judged::Young(wait) => wait,
                Judged::Later(at) => {
                    fates.later.insert(seen.row.clone(), at);
                    at.since(self.now)
                }
            };
            next = next.into_iter().chain([wait]).min();
            false
        });
        next
    }

    fn judge(&self, finder: &Finder, seen: &Seen) -> Judged {
        if self.known.contains(&seen.row) || !self.lanes.contains(&seen.found.lane) {
            return Judged::Passed;
        }
        if let Some(wait) = finder.recent.doubt(&seen.row, Instant::now()) {
            return Judged::Doubtful(wait);
        }
        if seen.outstanding > self.youngest {
            return Judged::Young(seen.outstanding.after(self.min_age).since(self.now));
        }
        match seen.found.not_before.filter(|at| *at > self.now) {
            Some(at) => Judged::Later(at),
            None => Judged::New,
        }
    }
}
