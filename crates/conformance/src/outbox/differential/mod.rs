//! Random sequences of operations on an outbox, on the memory store and on the store under test:
//! whatever can be seen must be the same after every step.
//!
//! Ids and fences differ between stores, and so do the lanes of keys: both sides speak in names (see
//! [`side`]), and whoever has lanes has all of them, so that it does not matter which. All sequences
//! share one store; each begins with an outbox in which everything is sent.

mod operation;
mod side;
mod world;

use crate::{
    Fresh,
    differential::{reference, search},
    outbox::bench::Bench,
    runtime,
};
use operation::{Operation, sequences};
use proptest::test_runner::{TestCaseError, TestCaseResult};
use std::future::Future;
use tokio::runtime::Runtime;
use world::World;

/// As many as a store with real commits plays in some seconds.
const SEQUENCES: u32 = 50;

/// Compares the outbox of a store with that of the memory store, as
/// [`differential`](crate::differential) does for batches.
pub fn outbox_differential<F: Future<Output = Fresh>>(fixture: impl Fn() -> F) {
    let runtime = runtime();
    let fresh = runtime.block_on(fixture());
    let store = fresh.outbox_bench();
    search(SEQUENCES, sequences(), |operations| play(&runtime, &store, operations));
    drop(store);
    runtime.block_on(fresh.close());
}

fn play(runtime: &Runtime, store: &Bench, operations: &[Operation]) -> TestCaseResult {
    runtime.block_on(async {
        let mut world = World::new(reference().outbox_bench(), store.clone()).await;
        let mut played = Ok(());
        for (n, operation) in operations.iter().enumerate() {
            played = world.step(operation).await.map_err(|why| format!("step {n}: {why}"));
            if played.is_err() {
                break;
            }
        }
        world.end().await;
        played.map_err(TestCaseError::fail)
    })
}
