//! Many seeds, each a world of relays, sinks and messages of its own.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::{BTreeMap, BTreeSet};
use tidegate_core::outbox::Aside;
use tidegate_sim::relay::{
    Ending, Event, Hazards, Scenario, check, check_seed, database::Mistake, simulate,
};

/// Seeds per test; `TIDEGATE_SIM_SEEDS` asks for more, `TIDEGATE_SIM_SEED` for one,
/// `TIDEGATE_SIM_HAZARDS` for other trouble (a list such as `crash,hang`, `all` or `all,-reroute`),
/// `TIDEGATE_SIM_HISTORY` for all that happens with one seed.
const SEEDS: u64 = 700;

/// What sinks do to each other.
const NEIGHBORS: &str = "sinks,absent,hang,throttle,unknown,unordered,coalesce,unrouted";

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn seeds() -> std::ops::Range<u64> {
    match number("TIDEGATE_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("TIDEGATE_SIM_SEEDS").unwrap_or(SEEDS),
    }
}

fn hazards(otherwise: &str) -> Hazards {
    let list = std::env::var("TIDEGATE_SIM_HAZARDS");
    Hazards::parse(list.as_deref().unwrap_or(otherwise)).unwrap()
}

fn check_seeds(otherwise: &str) {
    let hazards = hazards(otherwise);
    let broken = seeds().filter_map(|seed| check_seed(seed, hazards.clone()).err());
    let broken: Vec<String> = broken.collect();
    let most = number("TIDEGATE_SIM_SHOW").unwrap_or(20) as usize;
    let first: Vec<&String> = broken.iter().take(most).collect();
    assert!(
        broken.is_empty(),
        "{} seeds fail, such as {first:#?}\nagain: TIDEGATE_SIM_HAZARDS={otherwise} \
         TIDEGATE_SIM_SEED=… cargo test -p tidegate-sim --test relay_seeds every_law",
        broken.len()
    );
}

#[test]
fn every_law_holds_in_every_world() {
    check_seeds("all");
}

#[test]
fn every_law_holds_whatever_sinks_do_to_each_other() {
    check_seeds(NEIGHBORS);
}

/// What comes in by transactions that draw ids, roll back to savepoints, are prepared and commit in any order.
const TRANSACTIONS: &str = "late-commit,relays,restart,crash,store";

#[test]
fn every_law_holds_however_transactions_overlap() {
    check_seeds(TRANSACTIONS);
}

/// Each step of publishers and claims is needed, and so is its place: otherwise these worlds would prove little.
#[test]
fn laws_find_each_mistake_about_transactions() {
    let broken_by = |mistake| {
        let breaks = |seed: &u64| {
            let hazards = Hazards::parse(TRANSACTIONS).unwrap();
            let scenario = Scenario { mistake, ..Scenario::from_seed(*seed, hazards) };
            check(&scenario).is_err()
        };
        (0..200).filter(breaks).count()
    };
    let found = Mistake::ALL.map(|mistake| (mistake, broken_by(Some(mistake))));
    assert!(found.iter().all(|(_, times)| *times > 2), "{found:?}");
}

/// A standby that is behind takes over, again and again, and relays live on.
#[test]
fn a_store_that_goes_back_in_time_loses_nothing_that_it_has() {
    let broken = seeds().filter_map(|seed| {
        check(&Scenario::going_back(seed)).err().map(|broken| format!("seed {seed}: {broken}"))
    });
    let broken: Vec<String> = broken.collect();
    assert!(
        broken.is_empty(),
        "{} seeds fail, such as {:#?}",
        broken.len(),
        &broken[..broken.len().min(5)]
    );
}

/// In some of these worlds a relay renews its lanes before anything else tells it that the store went back, also if
/// fences tell nothing. Otherwise they would not show that it notices.
#[test]
fn relays_renew_lanes_of_a_store_that_went_back() {
    let mut renewals = [0; 2];
    for seed in 0..120 {
        let scenario = Scenario::going_back(seed);
        let mut fences = scenario.go_backs.iter().map(|go_back| go_back.fences);
        let (mut last, mut told) = (None, BTreeSet::new());
        for entry in simulate(&scenario).unwrap().history {
            match entry.event {
                Event::WentBack(_) => (last, told) = (fences.next(), BTreeSet::new()),
                Event::Renewed if told.insert(entry.life) => {
                    last.into_iter().for_each(|fences| renewals[usize::from(fences)] += 1);
                }
                Event::Noticed | Event::Started => drop(told.insert(entry.life)),
                _ => {}
            }
        }
    }
    assert!(renewals.iter().all(|times| *times > 20), "{renewals:?}");
}

#[test]
fn a_history_is_shown_if_asked_for() {
    let asked = std::env::var("TIDEGATE_SIM_HISTORY").is_ok();
    if let Some(seed) = number("TIDEGATE_SIM_SEED").filter(|_| asked) {
        let scenario = Scenario::from_seed(seed, hazards("all"));
        println!("{scenario:#?}");
        for entry in simulate(&scenario).unwrap().history {
            println!("{:9.3} {} {:?}", entry.at.as_secs_f64(), entry.life, entry.event);
        }
    }
}

/// Lets a scenario happen twice.
fn check_again(scenario: &Scenario) {
    let [first, second] = [0, 1].map(|_| simulate(scenario).unwrap());
    let entries = first.history.iter().zip(&second.history);
    let different = entries.map(|(a, b)| [format!("{a:?}"), format!("{b:?}")]);
    let different: Vec<_> = different.filter(|[a, b]| a != b).take(1).collect();
    assert!(first.digest() == second.digest(), "seed {}: {different:#?}", scenario.seed);
}

#[test]
fn a_seed_gives_the_same_history_again() {
    (0..25).for_each(|seed| check_again(&Scenario::from_seed(seed, Hazards::all())));
}

/// One relay crashes at every single await of its life; another finishes its work.
#[test]
fn a_crash_at_any_await_loses_nothing() {
    let plan = |polls| {
        let mut scenario = Scenario::from_seed(7, Hazards::parse("crash,outlive").unwrap());
        scenario.messages.truncate(40);
        scenario.lives.truncate(1);
        scenario.lives[0].ending = Ending::CrashAtPoll { polls };
        scenario
    };
    let polls = check(&plan(u64::MAX)).unwrap().polls[0];
    assert!(polls > 100, "only {polls} awaits: the test proves little");
    // Most are looks for messages that are not there.
    for crash_at in 1..=polls.min(250) {
        check(&plan(crash_at)).unwrap_or_else(|broken| panic!("await {crash_at}: {broken}"));
    }
}

/// Without these the worlds would be too calm to prove anything.
#[test]
fn the_worlds_are_stormy() {
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in 0..120 {
        let end = simulate(&Scenario::from_seed(seed, Hazards::all())).unwrap();
        for entry in end.history {
            let what = match &entry.event {
                Event::Crashed => "crashes",
                Event::Froze => "freezes",
                Event::ToldToStop => "stops",
                Event::Failed { effective: true, .. } => "unknown outcomes at the store",
                Event::Settled { late, .. } if !late.is_empty() => "late settlements",
                Event::Settled { lanes, .. } if lanes.iter().any(|it| !it.2.is_empty()) => "lags",
                Event::Settled { aside, .. } => match aside.first() {
                    Some((_, Aside::Retry { .. })) => "retries",
                    Some((_, Aside::Dead { .. })) => "deaths",
                    Some((_, Aside::Behind)) => "waits behind another",
                    Some((_, Aside::Later { .. })) => "delays",
                    Some((_, Aside::Unrouted)) => "topics without a route",
                    None => continue,
                },
                Event::Retried(_) | Event::Dropped(_) => "decisions",
                _ => continue,
            };
            *seen.entry(what).or_default() += 1;
        }
    }
    assert!(seen.len() == 12 && seen.values().all(|times| *times > 5), "{seen:#?}");
}

/// What once broke a law.
mod once {
    use super::*;

    fn holds(seed: u64, list: &str) {
        check_seed(seed, Hazards::parse(list).unwrap()).unwrap();
    }

    #[test]
    fn law_6_a_sink_that_comes_back_too_soon() {
        holds(156, "stop,restart,relays,sinks");
        holds(77, "crash,restart,relays,sinks,absent,hang,throttle");
    }

    #[test]
    fn law_6_a_drain_leaves_what_another_relay_had_no_route_for() {
        holds(8687, "all");
    }

    #[test]
    fn a_drain_waits_for_what_was_dropped() {
        holds(2694, "all");
    }

    #[test]
    fn law_11_a_stop_repeats_what_was_done_out_of_order() {
        holds(122, "stop,restart,relays,sinks");
    }

    #[test]
    fn law_11_a_stop_keeps_lanes_that_were_to_be_given_back() {
        holds(840, "stop,restart,relays");
    }

    #[test]
    fn law_11_a_stop_with_a_slow_store_settles_nothing() {
        holds(50, "stop,restart,relays,slow-store");
    }

    #[test]
    fn duplicates_without_any_fault() {
        holds(118, "verdicts");
        holds(382, "verdicts,sinks");
    }

    #[test]
    fn law_5_what_was_done_beyond_the_cursor_comes_again_and_last() {
        let others = "relays,restart,crash,outlive,freeze,unordered,unrouted";
        holds(2_269, &format!("{others},verdicts,refuse,hold,throttle"));
    }

    #[test]
    fn law_5_a_death_that_a_crash_undoes() {
        holds(1_317, "crash,verdicts");
    }

    #[test]
    fn law_5_groups_outlive_their_lease() {
        holds(57, "outage,absent,hang,relays");
    }

    #[test]
    fn law_5_a_delayed_message_goes_past_its_key() {
        holds(156, "sinks,delay");
    }

    #[test]
    fn law_6_a_drain_ends_before_delayed_messages_are_due() {
        holds(328, "relays,restart,crash,outlive,delay");
    }

    #[test]
    fn law_5_behind_rows_go_past_another_holder() {
        holds(21, "relays,restart,crash,outlive,verdicts,refuse,hold,operator");
        holds(36, "relays,restart,crash,outlive,verdicts,coalesce,mingle");
    }

    #[test]
    fn law_5_coalescing_moves_a_message_past_other_topics() {
        holds(218, "verdicts,coalesce,mingle");
    }
}
