//! Many seeds, each a world of its own.

use tidegate_sim::{Event, check_seed};

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
    let mut lost = 0;
    for seed in 0..300 {
        for entry in check_seed(seed).unwrap().history.read() {
            match entry.event {
                Event::Settled { answer: tidegate_core::settle::Settled::Late(_), .. } => late += 1,
                Event::Renewed { lost: fences, .. } => lost += fences.len(),
                _ => {}
            }
        }
    }
    assert!(late > 20, "only {late} late settlements");
    assert!(lost > 5, "only {lost} leases lost at renewal");
}
