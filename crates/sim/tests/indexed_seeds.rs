//! Many seeds, each a world whose store is read by state, through an index that lags.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{collections::BTreeMap, ops::Range, time::Duration};
use tidegate_core::outbox::Aside;
use tidegate_sim::relay::{Event, Hazards, IndexPlan, Scenario, Shortcut, check, simulate};

/// Seeds per test; `TIDEGATE_SIM_SEEDS` asks for more, `TIDEGATE_SIM_SEED` for one, `TIDEGATE_SIM_HAZARDS` for other
/// trouble, `TIDEGATE_SIM_HISTORY` for all that happens with one seed.
const SEEDS: u64 = 120;
/// Seeds to find what is left out.
const MUTANTS: u64 = 120;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn seeds() -> Range<u64> {
    match number("TIDEGATE_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("TIDEGATE_SIM_SEEDS").unwrap_or(SEEDS),
    }
}

fn hazards(otherwise: &str) -> Hazards {
    let list = std::env::var("TIDEGATE_SIM_HAZARDS");
    Hazards::parse(list.as_deref().unwrap_or(otherwise)).unwrap()
}

fn world(seed: u64, hazards: &str, change: impl Fn(&mut IndexPlan)) -> Scenario {
    let mut scenario = Scenario::indexed(seed, self::hazards(hazards));
    scenario.index.iter_mut().for_each(&change);
    scenario
}

fn broken(seeds: Range<u64>, world: impl Fn(u64) -> Scenario) -> Vec<String> {
    let broken = |seed| check(&world(seed)).err().map(|broken| format!("seed {seed}: {broken}"));
    seeds.filter_map(broken).collect()
}

fn check_seeds(world: impl Fn(u64) -> Scenario) {
    let broken = broken(seeds(), world);
    let most = number("TIDEGATE_SIM_SHOW").unwrap_or(5) as usize;
    let first: Vec<&String> = broken.iter().take(most).collect();
    assert!(broken.is_empty(), "{} seeds fail, such as {first:#?}", broken.len());
}

#[test]
fn every_law_holds_in_every_world() {
    check_seeds(|seed| world(seed, "all", |_| {}));
}

/// Without what makes sinks refuse and people decide, little else is left to hide behind.
#[test]
fn every_law_holds_where_only_relays_and_the_store_fail() {
    check_seeds(|seed| world(seed, "relays,restart,crash,stop,store,slow-store,outage", |_| {}));
}

/// What is read at once may come out of order. It is not lost all the same.
#[test]
fn nothing_is_lost_if_messages_are_read_too_young() {
    // Of messages out of order, an earlier one may stand for the last.
    check_seeds(|seed| world(seed, "all,-coalesce", |index| index.min_age = Duration::ZERO));
}

#[test]
fn a_history_is_shown_if_asked_for() {
    let asked = std::env::var("TIDEGATE_SIM_HISTORY").is_ok();
    if let Some(seed) = number("TIDEGATE_SIM_SEED").filter(|_| asked) {
        let scenario = world(seed, "all", |_| {});
        println!("{scenario:#?}");
        for entry in simulate(&scenario).unwrap().history {
            println!("{:9.3} {} {:?}", entry.at.as_secs_f64(), entry.life, entry.event);
        }
    }
}

#[test]
fn a_seed_gives_the_same_history_again() {
    for seed in 0..15 {
        let [first, second] = [0, 1].map(|_| simulate(&world(seed, "all", |_| {})).unwrap());
        assert_eq!(first.digest(), second.digest(), "seed {seed}");
    }
}

/// Whether one of the first seeds breaks a law if a relay takes this shortcut.
fn breaks(shortcut: Shortcut, law: &str, hazards: &str) -> bool {
    (0..MUTANTS).any(|seed| {
        let world = world(seed, hazards, |index| index.shortcut = Some(shortcut));
        check(&world).err().is_some_and(|broken| broken.contains(law))
    })
}

/// What once broke a law.
#[test]
fn what_once_broke_a_law_holds() {
    for seed in [486, 651, 1261, 1524] {
        check(&world(seed, "all", |_| {})).unwrap();
    }
}

/// Each of these must show: what a relay leaves out breaks the law that it is for.
mod what_is_left_out_shows {
    use super::*;

    const RELAYS: &str = "relays,restart,crash,stop,store,slow-store,outage";
    const FAILING: &str = "relays,restart,crash,verdicts,refuse,absent,sinks,store";

    #[test]
    fn messages_are_read_at_once() {
        assert!(breaks(Shortcut::NoMinAge, "law 5", RELAYS));
    }

    #[test]
    fn the_index_is_believed_after_lanes_were_gained() {
        assert!(breaks(Shortcut::NoVerifying, "law 5", RELAYS));
    }

    #[test]
    fn messages_are_marked_before_they_are_delivered() {
        assert!(breaks(Shortcut::MarkedFirst, "law 6", RELAYS));
    }

    #[test]
    fn what_is_set_aside_is_written_last_first() {
        assert!(breaks(Shortcut::LastAsideFirst, "law 5", FAILING));
    }

    #[test]
    fn what_is_done_is_marked_last_first() {
        assert!(breaks(Shortcut::LastMarkFirst, "law 5", RELAYS));
    }

    #[test]
    fn what_is_set_aside_is_written_before_what_is_done() {
        assert!(breaks(Shortcut::AsideBeforeDone, "law 5", FAILING));
    }
}

/// Without these the worlds would be too calm to prove anything.
#[test]
fn the_worlds_are_stormy() {
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in 0..60 {
        for entry in simulate(&world(seed, "all", |_| {})).unwrap().history {
            let what = match &entry.event {
                Event::Crashed => "crashes",
                Event::Froze => "freezes",
                Event::ToldToStop => "stops",
                Event::Failed { operation: "mark", effective: true } => "marks without an answer",
                Event::Failed { operation: "mark", effective: false } => "marks that fail",
                Event::Failed { operation: "set aside", .. } => "settlements that end in between",
                Event::Failed { operation: "query", .. } => "reads of more than a page",
                Event::Settled { aside, .. } => match aside.first() {
                    Some((_, Aside::Retry { .. })) => "retries",
                    Some((_, Aside::Dead { .. })) => "deaths",
                    Some((_, Aside::Behind)) => "waits behind another",
                    Some((_, Aside::Unrouted)) => "topics without a route",
                    _ => continue,
                },
                Event::Retried(_) | Event::Dropped(_) => "decisions",
                _ => continue,
            };
            *seen.entry(what).or_default() += 1;
        }
    }
    assert!(seen.len() == 12 && seen.values().all(|times| *times > 5), "{seen:#?}");
}
