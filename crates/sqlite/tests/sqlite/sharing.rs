//! Several stores on one file.

use crate::{claim, dense, settlement, store, submit};
use std::{path::Path, thread};
use tidegate_core::{
    Aggregates, BatchId, Inspect, Source, Submit,
    inspect::BatchQuery,
    run::Emitted,
    settle::{AccumulatorId, Failed, Settled},
    source::Finalized,
};
use tidegate_sqlite::{Open, Sqlite};
use tokio::runtime::Builder;

const RUNS: u64 = 2_000;

/// What one worker did.
#[derive(Default)]
struct Done {
    indexes: Vec<u64>,
    finalized: Vec<Finalized>,
}

/// Works on a store of its own until nothing is open.
async fn work(path: &Path, worker: i64) -> Done {
    let store = Sqlite::open(path, Open::Existing).unwrap();
    let mut done = Done::default();
    let mut sequence = 0;
    loop {
        let claim = claim(&store, 1, 20).await;
        done.finalized.extend(store.finalize(claim.settled).await.unwrap());
        for lease in claim.leases {
            done.indexes.extend((0..lease.items.len()).map(|n| lease.items.nth(n).index));
            sequence += 1;
            let mut settlement = settlement(&lease, dense(&lease), sequence);
            settlement.totals[0].accumulator = AccumulatorId(worker);
            assert_eq!(store.settle(settlement).await.unwrap(), Settled::Applied);
        }
        if claim.open == 0 {
            break;
        }
    }
    done
}

#[tokio::test]
async fn stores_on_one_file_never_get_the_same_run_and_close_a_batch_once() {
    let (_directory, path, store) = store().await;
    submit(&store, RUNS).await;
    let workers: Vec<Done> = thread::scope(|scope| {
        let work = |worker| {
            let runtime = Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(work(&path, worker))
        };
        let threads: Vec<_> = (1..=4).map(|worker| scope.spawn(move || work(worker))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut indexes: Vec<u64> = workers.iter().flat_map(|done| done.indexes.clone()).collect();
    indexes.sort_unstable();
    assert_eq!(indexes, (0..RUNS).collect::<Vec<_>>());
    assert_eq!(workers.iter().map(|done| done.finalized.len()).sum::<usize>(), 1);
    let status = store.batches(BatchQuery::one(BatchId(1))).await.unwrap().remove(0);
    assert_eq!(status.progress.completed, RUNS);
}

#[tokio::test]
async fn submitting_wakes_who_waits_in_this_process() {
    let (_directory, _path, store) = store().await;
    submit(&store, 1).await;
    store.wake().await;
    let waiting = tokio::spawn({
        let store = store.clone();
        async move { store.wake().await }
    });
    tokio::task::yield_now().await;
    submit(&store, 1).await;
    waiting.await.unwrap();
}

/// A worker's totals cover all it ever settled of a batch, and nobody tells it when another closes
/// the batch.
#[tokio::test]
async fn a_worker_that_goes_on_after_a_retry_is_counted_once() {
    let (_directory, _path, store) = store().await;
    let id = submit(&store, 2).await.id;
    let mut aggregates = Aggregates::default();
    let lease = claim(&store, 1, 2).await.leases.remove(0);
    let rest = claim(&store, 1, 2).await.leases.remove(0);
    let mut failing = settlement(&rest, None, 1);
    let reason = "no luck".to_owned();
    failing.parts[0].failed = vec![Failed { index: 1, attempts: 1, reason, delay: None }];
    assert_eq!(store.settle(failing).await.unwrap(), Settled::Applied);
    aggregates.add(0, b"0", &Emitted::default());
    let mut first = settlement(&lease, None, 2);
    first.totals[0].body = aggregates.encode();
    assert_eq!(store.settle(first.clone()).await.unwrap(), Settled::Applied);
    assert_eq!(store.finalize(vec![id]).await.unwrap().len(), 1);
    assert_eq!(store.settle(first).await.unwrap(), Settled::Applied, "sent again");

    assert_eq!(store.retry(id, 0).await.unwrap().runs, 1);
    let lease = claim(&store, 1, 2).await.leases.remove(0);
    aggregates.add(1, b"0", &Emitted::default());
    let mut second = settlement(&lease, None, 3);
    second.totals[0].body = aggregates.encode();
    assert_eq!(store.settle(second).await.unwrap(), Settled::Applied);
    assert_eq!(store.finalize(vec![id]).await.unwrap().len(), 1);
    assert_eq!(store.aggregates(id).await.unwrap(), aggregates);
}
