//! Removing delivered messages beside relays whose claims follow each other without a pause: whether it takes longer the
//! more there are, and whether a claim waits for it.

use super::{
    RelayArgs, Row,
    database::Database,
    median,
    throughput::{deliver, drain_rest, publish},
};
use crate::bench::report::{Bound, Judge};
use anyhow::{Result, bail};
use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use tidegate::{
    Access, OutboxStore,
    outbox::{ClaimRequest, Epoch, GiveBack, LaneLease, Place, Reader, Share},
    relay::RelayOptions,
    worker_id,
};
use tokio::{task::JoinSet, time::sleep};

/// How many times as many messages the large case removes.
const TIMES: u64 = 10;
/// How many claim at once, and how many messages of 1 KB each claim brings: that takes tens of milliseconds.
const READERS: usize = 4;
const READ: u64 = 4_000;
/// How long claims are timed with nothing beside them, for comparison.
const ALONE: Duration = Duration::from_secs(2);
/// How long they go on before something is removed: until then, they know nothing of that.
const BEFORE: Duration = Duration::from_millis(500);
/// How often removing is tried.
const TRIES: usize = 20;
const SECONDS_PER_DAY: f64 = 86_400.0;

/// The seconds that each step of one round took.
struct Round {
    publish: f64,
    relay: f64,
    seal: f64,
    remove: f64,
    tries: usize,
    longest_alone: f64,
    longest_beside: f64,
}

pub async fn measure(
    database: &Database,
    args: &RelayArgs,
    rows: &mut Vec<Row>,
    judge: &mut Judge,
) -> Result<()> {
    let (mut few, mut many) = (Vec::new(), Vec::new());
    for _ in 0..args.repeat {
        few.push(round(database, args.messages).await?);
        many.push(round(database, TIMES * args.messages).await?);
    }
    let of = |rounds: &[Round], what: fn(&Round) -> f64| median(rounds.iter().map(what).collect());
    let messages = TIMES * args.messages;
    let (publish, relay) = (of(&many, |it| it.publish), of(&many, |it| it.relay));
    rows.push(Row::new("publish, one writer", messages, publish));
    rows.push(Row::new("relay", messages, relay));
    let small = of(&few, |it| it.seal + it.remove);
    rows.push(Row::new("seal and remove", args.messages, small));
    rows.push(Row::new("seal, ten times as many", messages, of(&many, |it| it.seal)));
    let removing = of(&many, |it| it.remove);
    rows.push(Row::new("remove, ten times as many", messages, removing));
    let both = of(&many, |it| it.seal + it.remove);
    rows.push(Row { ratio: Some(both / small), ..Row::new("both", messages, both) });
    let all = || few.iter().chain(&many);
    let longest = |what: fn(&Round) -> f64| all().map(what).fold(0.0, f64::max);
    rows.push(Row::new("longest claim, nothing beside it", READ, longest(|it| it.longest_alone)));
    rows.push(Row::new("longest claim, beside it", READ, longest(|it| it.longest_beside)));
    let tries = all().map(|it| it.tries).max().unwrap_or_default();
    let per_day = |seconds: f64| Some(messages as f64 / seconds * SECONDS_PER_DAY);
    judge.check("removed per day", per_day(both), Bound::AtLeast, 1e9);
    judge.check(
        "the slowest of the steps, per day",
        per_day(publish.max(relay)),
        Bound::AtLeast,
        1e9,
    );
    judge.check("most tries", Some(tries as f64), Bound::AtMost, 2.0);
    Ok(())
}

/// Delivers messages and removes them while others wait to be read.
async fn round(database: &Database, messages: u64) -> Result<Round> {
    let store = database.store.outbox_store();
    // Other measurements may have left messages behind.
    while let Some(sealed) = store.seal(Duration::ZERO).await? {
        store.discard(sealed).await?;
    }
    let begun = Instant::now();
    let relay = deliver(database, messages).await?.seconds;
    let publish_seconds = begun.elapsed().as_secs_f64() - relay;
    let begun = Instant::now();
    let Some(sealed) = store.seal(Duration::ZERO).await? else {
        bail!("not all of {messages} delivered messages were read")
    };
    let seal = begun.elapsed().as_secs_f64();
    publish(&database.store, READ, |_| "bench".to_owned()).await?;
    let readers = Readers::lease(database).await?;
    let (_, longest_alone) = readers.beside(sleep(ALONE)).await?;
    let removing = async {
        sleep(BEFORE).await;
        let begun = Instant::now();
        for tries in 1..=TRIES {
            match store.discard(sealed).await {
                Ok(removed) if removed >= messages => {
                    return Ok((begun.elapsed().as_secs_f64(), tries));
                }
                Err(error) if !error.is_passing() => return Err(error.into()),
                _ => {}
            }
        }
        bail!("messages could not be removed in {TRIES} tries: others use them")
    };
    let (removed, longest_beside) = readers.beside(removing).await?;
    let (remove, tries) = removed?;
    readers.give_back(&store).await?;
    drain_rest(database).await?;
    let publish = publish_seconds;
    Ok(Round { publish, relay, seal, remove, tries, longest_alone, longest_beside })
}

/// Relays that read and deliver nothing.
struct Readers {
    stores: Vec<Arc<dyn OutboxStore>>,
    lanes: Vec<LaneLease>,
    request: ClaimRequest,
    relay: tidegate::WorkerId,
}

impl Readers {
    /// A claim that waits for a lock for 50 ms fails.
    async fn lease(database: &Database) -> Result<Self> {
        let (url, and) = (&database.url, if database.url.contains('?') { '&' } else { '?' });
        let impatient = format!("{url}{and}options=-clock_timeout%3D50");
        let mut stores = Vec::new();
        for _ in 0..READERS {
            stores.push(tidegate::open(&impatient, Access::Existing).await?.outbox_store());
        }
        let relay = worker_id();
        let share = Share {
            relay: relay.clone(),
            epoch: Epoch::default(),
            held: Vec::new(),
            routes: Vec::new(),
            lease: RelayOptions::new(relay.clone()).lease,
        };
        let shared = stores[0].share_lanes(share).await?;
        let places = shared.gained.iter().map(|it| Place { lane: it.lease.lane, after: it.cursor });
        let lanes: Vec<LaneLease> = shared.gained.iter().map(|it| it.lease).collect();
        let reader = Reader { places: places.collect(), most: READ as usize, ..Reader::default() };
        let request = ClaimRequest {
            epoch: shared.epoch,
            readers: vec![reader],
            lanes: lanes.iter().map(|it| it.lane).collect(),
            most_due: 1_000,
            most_bytes: 8 << 20,
            ..ClaimRequest::default()
        };
        Ok(Self { stores, lanes, request, relay })
    }

    /// Claims again and again until something else has ended. Returns its outcome, and the seconds of the longest
    /// claim.
    async fn beside<T>(&self, meanwhile: impl Future<Output = T>) -> Result<(T, f64)> {
        let (ended, mut claiming) = (Arc::new(AtomicBool::new(false)), JoinSet::new());
        for store in &self.stores {
            let claims = longest_claim(store.clone(), self.request.clone(), ended.clone());
            claiming.spawn(claims);
        }
        let outcome = meanwhile.await;
        ended.store(true, Relaxed);
        let mut longest = Duration::ZERO;
        while let Some(claimed) = claiming.join_next().await {
            longest = longest.max(claimed??);
        }
        Ok((outcome, longest.as_secs_f64()))
    }

    async fn give_back(self, store: &Arc<dyn OutboxStore>) -> Result<()> {
        let Self { relay, lanes, .. } = self;
        store.give_back_lanes(GiveBack { relay, lanes, ends: true }).await?;
        Ok(())
    }
}

/// Claims until it is told that it is enough.
async fn longest_claim(
    store: Arc<dyn OutboxStore>,
    request: ClaimRequest,
    ended: Arc<AtomicBool>,
) -> Result<Duration> {
    let mut longest = Duration::ZERO;
    while !ended.load(Relaxed) {
        let begun = Instant::now();
        store.claim_messages(request.clone()).await?;
        longest = longest.max(begun.elapsed());
    }
    Ok(longest)
}
