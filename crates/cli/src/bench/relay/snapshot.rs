//! A snapshot that is open for hours: what it may see stays, whatever becomes of it, and is in the way of those who
//! look for what is there now. What hours leave behind is made in seconds.

use super::{
    RelayArgs, Row,
    database::Database,
    median,
    sink::{Counting, plan},
    throughput::{deliver, drain_rest, publish},
};
use crate::bench::{
    meter::connect,
    report::{Bound, Judge},
};
use anyhow::{Context, Result, ensure};
use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};
use tidegate::{
    Stop,
    outbox::{Epoch, GiveBack, Share},
    relay::{Relay, RelayOptions},
    worker_id,
};
use tokio::time::{Instant, sleep};

/// How long messages come in one by one before it is looked what that did.
const AGE: Duration = Duration::from_secs(10);
/// How often a relay says within eight hours that it lives.
const SHARES: u64 = 8 * 3_600 / 5;
/// Messages that fail once in that time, ten per second.
const FAILURES: i64 = 8 * 3_600 * 10;
/// The server counts what is dead within this time.
const COUNTED: Duration = Duration::from_secs(2);

const VACUUM: &str = "vacuum tidegate.lane, tidegate.relay, tidegate.progress, tidegate.aside";
const OPEN: &str = "begin isolation level repeatable read; select count(*) from tidegate.lane";
const DEAD: &str = "
    select sum(n_dead_tup)::bigint from pg_stat_user_tables where schemaname = 'tidegate'";
/// Those of the only relay.
const SETTLEMENTS: &str = "select coalesce(max(number), 0) from tidegate.progress";

/// What was set aside and tried again with success, as long ago as that may be.
const SET_ASIDE: &str = "
    insert into tidegate.aside
        (lane, id, topic, key_hash, sink, state, attempts, reason, on_dead, due_at)
    select n % 64, -n, 'bench', n, 'counting', 'retry', 1, 'failed', 'skip',
        now() - n * interval '8 hours' / $1::bigint
    from generate_series(1, $1::bigint) n";
/// The planner has seen all of it.
const DONE: &str = "analyze tidegate.aside; delete from tidegate.aside where id < 0";

pub async fn measure(
    database: &Database,
    args: &RelayArgs,
    rows: &mut Vec<Row>,
    judge: &mut Judge,
) -> Result<()> {
    let (mut closed, mut open, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let mut starts = Vec::new();
    let mut dead_rows = Vec::new();
    for _ in 0..args.repeat {
        let (_, without) = deliver_some(database, args.messages).await?;
        let snapshot = connect(&database.url).await?;
        snapshot.batch_execute(OPEN).await?;
        live(database).await?;
        database.client.execute(SET_ASIDE, &[&FAILURES]).await?;
        database.client.batch_execute(DONE).await?;
        let before = dead(database).await?;
        let settlements = age(database).await?;
        let after = dead(database).await?;
        drain_rest(database).await?;
        let (start, with) = deliver_some(database, args.messages).await?;
        snapshot.batch_execute("commit").await?;
        database.client.batch_execute(VACUUM).await?;
        dead_rows.push((after - before) as f64 / settlements as f64);
        ratios.push(without / with);
        starts.push(start);
        closed.push(without);
        open.push(with);
    }
    let (ratio, messages) = (median(ratios), args.messages * TIMES);
    rows.push(Row::new("relay, no snapshot is open", messages, median(closed)));
    let row = Row::new("relay, a snapshot is open as if for 8 h", messages, median(open));
    rows.push(Row { ratio: Some(ratio), ..row });
    rows.push(Row::new("its start, to the first message", TIMES, median(starts)));
    judge.check("snapshot is open as if for 8 h / is not", Some(ratio), Bound::AtLeast, 0.9);
    judge.check("dead rows per settlement", Some(median(dead_rows)), Bound::AtMost, 2.0);
    Ok(())
}

/// One delivery is short.
const TIMES: u64 = 3;

/// Returns how many seconds some relays took to start, and to deliver from then on: one that runs for hours starts
/// once.
async fn deliver_some(database: &Database, messages: u64) -> Result<(f64, f64)> {
    let (mut starting, mut seconds) = (0.0, 0.0);
    for _ in 0..TIMES {
        let delivered = deliver(database, messages).await?;
        starting += delivered.to_first;
        seconds += delivered.seconds - delivered.to_first;
    }
    Ok((starting, seconds))
}

/// A relay says that it lives as often as in hours.
async fn live(database: &Database) -> Result<()> {
    let (store, relay) = (database.store.outbox_store(), worker_id());
    let lease = RelayOptions::new(relay.clone()).lease;
    let (mut epoch, mut held) = (Epoch::default(), Vec::new());
    for _ in 0..SHARES {
        let (relay, held_now) = (relay.clone(), held.clone());
        let request = Share { relay, epoch, held: held_now, routes: Vec::new(), lease };
        let shared = store.share_lanes(request).await?;
        held.extend(shared.gained.iter().map(|gained| gained.lease));
        epoch = shared.epoch;
    }
    store.give_back_lanes(GiveBack { relay, lanes: held, ends: true }).await?;
    Ok(())
}

async fn dead(database: &Database) -> Result<i64> {
    sleep(COUNTED).await;
    Ok(database.client.query_one(DEAD, &[]).await?.get(0))
}

/// Delivers messages as they come in, one by one. Returns in how many settlements.
async fn age(database: &Database) -> Result<i64> {
    let store = &database.store;
    let sink = Arc::new(Counting { group: 1_000, ..Counting::default() });
    let options = RelayOptions::new(worker_id());
    let planned = plan(&[("counting", "*", sink.clone())]);
    let relay = Relay::new(store.outbox_store(), planned, options)?;
    let stop = Stop::new();
    let running = tokio::spawn({
        let stop = stop.clone();
        async move { relay.run(stop).await }
    });
    let until = Instant::now() + AGE;
    while Instant::now() < until {
        publish(store, 1, |_| "bench".to_owned()).await?;
    }
    let settlements = database.client.query_one(SETTLEMENTS, &[]).await?.get(0);
    stop.stop();
    running.await.context("the relay ended")??;
    ensure!(settlements > 0 && sink.seen.load(Relaxed) > 0, "nothing was delivered");
    Ok(settlements)
}
