//! Many seeds, each a world of its own.

use std::time::Duration;
use tidegate_core::settle::Settled;
use tidegate_sim::{Event, Fate, Faults, Plan, check_plan, check_seed};

/// Seeds per test run; `TIDEGATE_SIM_SEEDS` asks for more, `TIDEGATE_SIM_SEED` for one.
const SEEDS: u64 = 2_000;

fn seeds() -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    match number("TIDEGATE_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("TIDEGATE_SIM_SEEDS").unwrap_or(SEEDS),
    }
}

#[test]
fn every_law_holds_in_every_world() {
    for seed in seeds() {
        check_seed(seed).unwrap_or_else(|broken| {
            panic!(
                "{broken}\nagain: TIDEGATE_SIM_SEED={seed} cargo test -p tidegate-sim --test seeds"
            )
        });
    }
}

#[test]
fn a_seed_gives_the_same_history_again() {
    for seed in [3, 14, 159] {
        let history = |_| format!("{:?}", check_seed(seed).unwrap().history.read());
        let [first, second] = [0, 1].map(history);
        assert_eq!(first, second, "seed {seed}");
    }
}

/// Without these the worlds would be too calm to prove anything.
#[test]
fn the_worlds_are_stormy() {
    let mut late = 0;
    let (mut lost, mut forgotten, mut ended) = (0, 0, 0);
    for seed in 0..300 {
        let end = check_seed(seed).unwrap();
        let exceptions = end.batches.iter().flat_map(|batch| &batch.exceptions);
        ended += exceptions.filter(|dead| dead.reason.starts_with("its worker")).count();
        for entry in end.history.read() {
            match entry.event {
                Event::Settled { answer: Settled::Forgotten(_), .. } => forgotten += 1,
                Event::Settled { answer: Settled::Late(_), .. } => late += 1,
                Event::Renewed { lost: fences, .. } => lost += fences.len(),
                _ => {}
            }
        }
    }
    assert!(late > 20, "only {late} late settlements");
    assert!(lost > 5, "only {lost} leases lost at renewal");
    assert!(forgotten > 20, "only {forgotten} settlements after the store went back in time");
    assert!(ended > 20, "only {ended} runs that end their workers");
}

/// Workers that nothing but the runs themselves disturbs: those runs are dead, and no other is.
#[test]
fn only_the_runs_that_end_their_workers_are_given_up() {
    for seed in 0..300 {
        let mut plan = Plan::from_seed(seed);
        plan.travels.clear();
        for batch in &mut plan.batches {
            batch.behaviour.deadly = Some(seed % batch.runs);
        }
        for worker in &mut plan.workers {
            worker.fate = Fate::Lives;
            worker.faults = Faults { failing: 0.0, slow: 0.0, ..worker.faults };
            worker.lease = Duration::from_secs(2);
        }
        check_plan(&plan).unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
    }
}
