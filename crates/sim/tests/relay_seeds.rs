//! Many seeds, each a world of relays, sinks and messages of its own.

use tidegate_sim::relay::{Hazards, Scenario, check_seed, simulate};

/// Seeds per test run; `TIDEGATE_SIM_SEEDS` asks for more, `TIDEGATE_SIM_SEED` for one,
/// `TIDEGATE_SIM_HAZARDS` for other trouble.
const SEEDS: u64 = 1_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn seeds() -> std::ops::Range<u64> {
    match number("TIDEGATE_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("TIDEGATE_SIM_SEEDS").unwrap_or(SEEDS),
    }
}

fn hazards() -> Hazards {
    match std::env::var("TIDEGATE_SIM_HAZARDS") {
        Ok(list) => Hazards::parse(&list).unwrap(),
        Err(_) => Hazards::all(),
    }
}

/// `TIDEGATE_SIM_HISTORY` asks for all that happens with one seed.
#[test]
fn a_history_is_shown_if_asked_for() {
    let asked = std::env::var("TIDEGATE_SIM_HISTORY").is_ok();
    if let Some(seed) = number("TIDEGATE_SIM_SEED").filter(|_| asked) {
        let scenario = Scenario::from_seed(seed, hazards());
        println!("{scenario:#?}");
        for entry in simulate(&scenario).unwrap().history {
            println!("{:9.3} {} {:?}", entry.at.as_secs_f64(), entry.life, entry.event);
        }
    }
}

#[test]
fn every_law_holds_in_every_world() {
    let broken: Vec<String> =
        seeds().filter_map(|seed| check_seed(seed, hazards()).err()).collect();
    let first: Vec<&String> =
        broken.iter().take(number("TIDEGATE_SIM_SHOW").unwrap_or(20) as usize).collect();
    assert!(broken.is_empty(), "{} seeds fail, such as {first:#?}", broken.len());
}
