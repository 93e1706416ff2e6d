//! What must be known about a table that was just leased, read in pages.
//!
//! With millions of rows set aside that takes longer than a lease lasts. So a share works for a third of the lease
//! at most; the next one renews the lease and goes on where this one stopped. The relay gets its lanes when all of it
//! is known. What is kept until then grows with the keys that wait, and with nothing else.

use super::{
    Adopted,
    message::lane,
    share::{Lease, OPERATION},
};
use crate::{decode::get, error::corrupt, pool::Params};
use tidegate_core::{
    Fence, StoreError,
    outbox::{Gained, HeldKey, KeyHash, LANES, Lane, LaneLease, Route, Share},
};
use tokio::time::Instant;
use tokio_postgres::{Row, types::Type};

/// Messages that one call looks at: a few milliseconds, because it locks the table's lease.
const PAGE: i64 = 2_000;

/// So many steps are done in one share, whatever time they take: a table with little set aside needs no more.
const STEPS: usize = 4;

/// A lease that was gained, and how far its table was looked at.
pub(super) struct TakeOver {
    pub fence: Fence,
    /// No position that is stored is behind it.
    last_id: i64,
    routes: Vec<Route>,
    step: Step,
    /// By lane.
    held: Vec<Vec<HeldKey>>,
}

/// What comes next, and from where on.
#[derive(Clone)]
enum Step {
    /// What was set aside goes to the sinks of present routes.
    Reroute {
        after: Option<(String, String)>,
    },
    /// Of every key that waits, the first is found.
    Keys {
        sink: String,
        key: i64,
        id: i64,
    },
    /// Pending rows are passed that were set aside.
    Front,
    Done,
}

impl TakeOver {
    fn new(lease: &Lease, routes: &[Route]) -> Self {
        Self {
            fence: lease.fence,
            last_id: lease.last_id,
            routes: routes.to_vec(),
            step: Step::Reroute { after: None },
            held: (0..LANES).map(|_| Vec::new()).collect(),
        }
    }

    fn is_of(&self, lease: &Lease, routes: &[Route]) -> bool {
        self.fence == lease.fence && self.routes == routes
    }

    fn hold(&mut self, sinks: Vec<String>, keys: Vec<i64>) {
        for (sink, key) in sinks.into_iter().zip(keys.into_iter().map(KeyHash)) {
            let lane = lane(key);
            self.held[usize::from(lane.0)].push(HeldKey { lane, sink, key });
        }
    }

    fn gained(self) -> Vec<Gained> {
        let gained = |(lane, held): (u16, Vec<HeldKey>)| Gained {
            lease: LaneLease { lane: Lane(lane), fence: self.fence },
            cursor: self.last_id,
            lags: Vec::new(),
            before: None,
            held,
            // What was set aside is not read as pending.
            aside: Vec::new(),
        };
        (0..LANES).zip(self.held).map(gained).collect()
    }
}

impl Adopted {
    /// Brings what was set aside in order, and begins to read anew. `None` if there is more to do than fits into a
    /// third of the lease.
    pub(super) async fn take_over(
        &self,
        request: &Share,
        lease: &Lease,
    ) -> Result<Option<Vec<Gained>>, StoreError> {
        {
            let mut taking = self.taking();
            if !taking.as_ref().is_some_and(|it| it.is_of(lease, &request.routes)) {
                *taking = Some(TakeOver::new(lease, &request.routes));
            }
        }
        let begun = Instant::now();
        for n in 0.. {
            if n >= STEPS && begun.elapsed() > request.lease / 3 {
                break;
            }
            let step = self.taking().as_ref().map_or(Step::Done, |it| it.step.clone());
            match step {
                Step::Reroute { after } => self.reroute(&request.routes, after).await?,
                Step::Keys { sink, key, id } => self.find_first(sink, key, id).await?,
                Step::Front => self.find_front(lease).await?,
                Step::Done => return Ok(self.taking().take().map(TakeOver::gained)),
            }
        }
        Ok(None)
    }

    async fn reroute(
        &self,
        routes: &[Route],
        after: Option<(String, String)>,
    ) -> Result<(), StoreError> {
        let (topic, sink) = after.unzip();
        let regexes: Vec<String> = routes.iter().map(Route::regex).collect();
        let sinks: Vec<&str> = routes.iter().map(|route| route.sink.as_str()).collect();
        let params: Params<'_> = &[
            (&self.plan.table.adopted, Type::TEXT),
            (&regexes, Type::TEXT_ARRAY),
            (&sinks, Type::TEXT_ARRAY),
            (&PAGE, Type::INT8),
            (&topic, Type::TEXT),
            (&sink, Type::TEXT),
        ];
        let row = self.page(include_str!("../sql/adopted/reroute_page.sql"), params).await?;
        let place = |column| get::<Option<String>>(OPERATION, &row, column);
        let next = match get(OPERATION, &row, "more")? {
            true => Step::Reroute { after: place("at_topic")?.zip(place("at_sink")?) },
            false => Step::Keys { sink: String::new(), key: i64::MIN, id: 0 },
        };
        self.advance(next, |_| {});
        Ok(())
    }

    async fn find_first(&self, sink: String, key: i64, id: i64) -> Result<(), StoreError> {
        let params: Params<'_> = &[
            (&self.plan.table.adopted, Type::TEXT),
            (&PAGE, Type::INT8),
            (&sink, Type::TEXT),
            (&key, Type::INT8),
            (&id, Type::INT8),
        ];
        let row = self.page(include_str!("../sql/adopted/take_page.sql"), params).await?;
        let next = match get::<Option<i64>>(OPERATION, &row, "at_id")? {
            Some(id) => {
                let (sink, key) =
                    (get(OPERATION, &row, "at_sink")?, get(OPERATION, &row, "at_key")?);
                Step::Keys { sink, key, id }
            }
            None => Step::Front,
        };
        let (sinks, keys) = (get(OPERATION, &row, "sinks")?, get(OPERATION, &row, "keys")?);
        self.advance(next, |taking| taking.hold(sinks, keys));
        Ok(())
    }

    /// From here on, places are those of the new lease.
    async fn find_front(&self, lease: &Lease) -> Result<(), StoreError> {
        self.front().begin(lease.fence);
        let more = self.look_ahead().await?;
        self.advance(if more { Step::Front } else { Step::Done }, |_| {});
        Ok(())
    }

    async fn page(&self, sql: &str, params: Params<'_>) -> Result<Row, StoreError> {
        let rows = self.pool.call(self.pool.leased(OPERATION), sql, params).await?;
        let first = rows.into_iter().next();
        first.ok_or_else(|| corrupt(OPERATION, "the answer came back empty"))
    }

    fn advance(&self, next: Step, learn: impl FnOnce(&mut TakeOver)) {
        if let Some(taking) = self.taking().as_mut() {
            learn(taking);
            taking.step = next;
        }
    }
}
