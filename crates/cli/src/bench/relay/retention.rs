//! Removing delivered messages: whether that takes longer the more there are, and how long claims wait meanwhile.

use super::{RelayArgs, Row, database::Database, median, throughput::deliver};
use crate::bench::report::{Bound, Judge};
use anyhow::{Context, Result, bail};
use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};
use tidegate::{
    OutboxStore,
    outbox::{ClaimRequest, Epoch, GiveBack, LaneLease, Place, Reader, Share},
    relay::RelayOptions,
    worker_id,
};
use tokio::time::sleep;

/// How many times as many messages the large case removes.
const TIMES: u64 = 10;
/// How long claims are timed with nothing beside them, for comparison.
const ALONE: Duration = Duration::from_secs(2);
/// How often removing is tried: each try gives way to claims.
const TRIES: usize = 20;
const SECONDS_PER_DAY: f64 = 86_400.0;

pub async fn measure(
    database: &Database,
    args: &RelayArgs,
    rows: &mut Vec<Row>,
    judge: &mut Judge,
) -> Result<()> {
    let store = database.store.outbox_store();
    // What other measurements left is no part of this one.
    remove(&store).await?;
    let (mut few, mut many, mut waits, mut alone) = (Vec::new(), Vec::new(), 0.0_f64, 0.0_f64);
    for _ in 0..args.repeat {
        for (messages, seconds) in [(args.messages, &mut few), (TIMES * args.messages, &mut many)] {
            deliver(database, messages).await?;
            let reader = AllLanes::lease(&store).await?;
            alone = alone.max(reader.longest_claim(sleep(ALONE)).await?.1);
            let begun = Instant::now();
            let (removed, wait) = reader.longest_claim(remove(&store)).await?;
            seconds.push(begun.elapsed().as_secs_f64());
            waits = waits.max(wait);
            reader.give_back().await?;
            if removed? < messages {
                bail!("not all of {messages} delivered messages were removed");
            }
        }
    }
    let (few, many) = (median(few), median(many));
    rows.push(Row::new("retention, seal and remove", args.messages, few));
    let row = Row::new("retention, ten times as many", TIMES * args.messages, many);
    let per_day = row.per_second * SECONDS_PER_DAY;
    rows.push(Row { ratio: Some(many / few), ..row });
    rows.push(Row::new("longest claim, nothing beside it", 1, alone));
    rows.push(Row::new("longest claim, beside retention", 1, waits));
    judge.check("messages removed per day", Some(per_day), Bound::AtLeast, 1e9);
    judge.check("claim beside retention, ms", Some(1_000.0 * waits), Bound::AtMost, 50.0);
    Ok(())
}

/// Removes everything that was delivered. Returns how many messages that were.
async fn remove(store: &Arc<dyn OutboxStore>) -> Result<u64> {
    let mut removed = 0;
    for _ in 0..TRIES {
        match store.seal(Duration::ZERO).await? {
            None => return Ok(removed),
            Some(sealed) => match store.discard(sealed).await {
                Ok(messages) => removed += messages,
                Err(error) if error.is_passing() => {}
                Err(error) => return Err(error.into()),
            },
        }
    }
    bail!("messages could not be removed: others use them")
}

/// A relay that reads all lanes and delivers nothing.
struct AllLanes<'a> {
    store: &'a Arc<dyn OutboxStore>,
    lanes: Vec<LaneLease>,
    request: ClaimRequest,
    relay: tidegate::WorkerId,
}

impl<'a> AllLanes<'a> {
    async fn lease(store: &'a Arc<dyn OutboxStore>) -> Result<Self> {
        let relay = worker_id();
        let options = RelayOptions::new(relay.clone());
        let share = Share {
            relay: relay.clone(),
            epoch: Epoch::default(),
            held: Vec::new(),
            routes: Vec::new(),
            lease: options.lease,
        };
        let shared = store.share_lanes(share).await?;
        let places = shared.gained.iter().map(|it| Place { lane: it.lease.lane, after: it.cursor });
        let lanes: Vec<LaneLease> = shared.gained.iter().map(|it| it.lease).collect();
        let reader = Reader { places: places.collect(), most: 1_000, ..Reader::default() };
        let request = ClaimRequest {
            epoch: shared.epoch,
            readers: vec![reader],
            lanes: lanes.iter().map(|it| it.lane).collect(),
            most_due: 1_000,
            most_bytes: 1 << 20,
            ..ClaimRequest::default()
        };
        Ok(Self { store, lanes, request, relay })
    }

    /// Claims again and again until something else has ended. Returns its outcome, and the seconds of the longest
    /// claim.
    async fn longest_claim<T>(&self, meanwhile: impl Future<Output = T>) -> Result<(T, f64)> {
        let (mut meanwhile, mut longest) = (pin!(meanwhile), Duration::ZERO);
        loop {
            let begun = Instant::now();
            let mut claim = pin!(self.store.claim_messages(self.request.clone()));
            tokio::select! {
                ended = &mut meanwhile => {
                    claim.await.context("a claim failed")?;
                    return Ok((ended, longest.max(begun.elapsed()).as_secs_f64()));
                }
                claimed = &mut claim => { claimed.context("a claim failed")?; }
            }
            longest = longest.max(begun.elapsed());
        }
    }

    async fn give_back(self) -> Result<()> {
        let Self { store, relay, lanes, .. } = self;
        store.give_back_lanes(GiveBack { relay, lanes, ends: true }).await?;
        Ok(())
    }
}
