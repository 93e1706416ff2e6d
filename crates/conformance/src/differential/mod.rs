//! Random sequences of operations, on the memory store and on the store under test: whatever can be
//! seen must be the same after every step.
//!
//! Ids and fences differ between stores, so both sides speak in names (see [`side`]): batch 0, 1, 2
//! in the order of submission, fence 0, 1, 2 in the order of claiming. Leases and delays are either
//! zero or an hour, so that the clocks of the two do not matter. All sequences share one store; each
//! has a workload of its own, and so sees only its own batches.

mod operation;
mod side;
mod world;

use crate::{Fresh, harness::Bench, runtime};
use operation::{Operation, sequences};
use proptest::{
    strategy::Strategy,
    test_runner::{Config, RngSeed, TestCaseError, TestCaseResult, TestError, TestRunner},
};
use std::{
    fmt::Debug,
    future::Future,
    hash::{BuildHasher, RandomState},
    sync::atomic::{AtomicU64, Ordering},
    time::SystemTime,
};
use tidegate_core::Memory;
use tokio::runtime::Runtime;
use world::World;
pub(crate) use world::{both, same};

/// Enough to meet every pair of operations many times, few enough for a store with real commits.
const SEQUENCES: u32 = 100;

/// A failing sequence is made smaller at most this often: each try is a sequence of real calls.
const SHRINKS: u32 = 500;

/// Compares a store with the memory store; panics with the shortest sequence found that tells them
/// apart. `PROPTEST_RNG_SEED` repeats a run and `PROPTEST_CASES` lengthens it.
pub fn differential<F: Future<Output = Fresh>>(fixture: impl Fn() -> F) {
    let runtime = runtime();
    let fresh = runtime.block_on(fixture());
    let comparison = Comparison { runtime: &runtime, store: fresh.bench(), played: 0.into() };
    search(SEQUENCES, sequences(), |operations| comparison.play(operations));
    drop(comparison);
    runtime.block_on(fresh.close());
}

/// Plays random sequences; panics with the shortest one found that fails.
pub(crate) fn search<O: Debug>(
    most: u32,
    sequences: impl Strategy<Value = Vec<O>>,
    play: impl Fn(&[O]) -> TestCaseResult,
) {
    let (config, seed) = config(most);
    let outcome = TestRunner::new(config).run(&sequences, |operations| play(&operations));
    if let Err(TestError::Fail(reason, operations)) = outcome {
        panic!("{}", failure(seed, &operations, reason.message()));
    }
    outcome.expect("sequences can be generated");
}

fn config(sequences: u32) -> (Config, u64) {
    let mut config =
        Config { max_shrink_iters: SHRINKS, failure_persistence: None, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = sequences;
    }
    let seed = match config.rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => RandomState::new().hash_one(()),
    };
    config.rng_seed = RngSeed::Fixed(seed);
    (config, seed)
}

fn failure(seed: u64, operations: &[impl Debug], reason: &str) -> String {
    let steps = operations.iter().enumerate().map(|(n, step)| format!("  {n}: {step:?}\n"));
    let steps: String = steps.collect();
    format!("the stores differ (PROPTEST_RNG_SEED={seed}) at {reason}\nafter:\n{steps}")
}

struct Comparison<'a> {
    runtime: &'a Runtime,
    store: Bench,
    played: AtomicU64,
}

impl Comparison<'_> {
    fn play(&self, operations: &[Operation]) -> TestCaseResult {
        let workload = format!("sequence {}", self.played.fetch_add(1, Ordering::Relaxed));
        let mut world = World::new(reference().bench(), self.store.clone(), workload);
        self.runtime.block_on(async {
            for (n, operation) in operations.iter().enumerate() {
                let step = world.step(operation).await;
                step.map_err(|why| TestCaseError::fail(format!("step {n}: {why}")))?;
            }
            Ok(())
        })
    }
}

/// What the others are compared with.
pub(crate) fn reference() -> Fresh {
    Fresh::new(Memory::new(|| SystemTime::UNIX_EPOCH.elapsed().expect("the clock is past 1970")))
}
