//! What holds over services drawn at random.

#![allow(clippy::unwrap_used, reason = "everything here is a test or serves one")]

use std::collections::BTreeMap;
use tidegate_pacer::scenario::{
    AnyPolicy, Scenario,
    tournament::{Family, Figures, Kind, Played, Results, Tournament},
};

/// The services of these tests.
const SEED: u64 = 20_261_118;
const SIX: Tournament = Tournament { family: Family::Six, services: 120, seed: SEED };
const WIDE: Tournament = Tournament { family: Family::Wide, services: 144, seed: SEED };

/// What `full` reaches on them: median, worst tenth and worst share of the ideal speed, and what nine of
/// ten lose at most.
mod bounds {
    use super::Least;

    pub const SIX: Least = Least { median: 0.95, worst_tenth: 0.85, worst: 0.60, lost: 0.045 };
    pub const WITHOUT_LATENCY: Least =
        Least { median: 0.92, worst_tenth: 0.68, worst: 0.35, lost: 0.10 };
    pub const WITH_LATENCY: Least =
        Least { median: 0.82, worst_tenth: 0.65, worst: 0.40, lost: 0.12 };
    /// The median of each of the six kinds.
    pub const EACH: f64 = 0.90;
    /// So many of the six kinds' services may be more than a fifth behind the best other policy …
    pub const FAR_BEHIND: usize = 2;
    /// … and so many of those that change are in full use soon after.
    pub const SOON_IN_USE: f64 = 0.9;
}

struct Least {
    median: f64,
    worst_tenth: f64,
    worst: f64,
    lost: f64,
}

impl Least {
    fn holds(&self, what: &str, figures: Option<Figures>) {
        let figures = figures.unwrap();
        let holds = figures.median >= self.median
            && figures.worst_tenth >= self.worst_tenth
            && figures.worst >= self.worst
            && figures.lost_p90 <= self.lost;
        assert!(holds, "{what}: {figures:?}");
    }
}

fn run(tournament: Tournament, policies: &[&str]) -> Results {
    let policies: Vec<AnyPolicy> = policies.iter().map(|name| name.parse().unwrap()).collect();
    tournament.run(&policies, 2)
}

/// Nothing is sent inside a Retry-After, and the limit stays where it may be.
fn keeps_the_rules(played: &[Played]) {
    for one in played {
        assert_eq!(one.inside_retry_after, 0, "{one:?}");
        assert!(one.limit <= 1.0, "{one:?}");
    }
}

#[test]
fn the_pacer_holds_on_the_six_kinds() {
    let results = run(SIX, &["full", "seed", "vector", "gradient2", "vegas"]);
    let full = &results.policies[0];
    keeps_the_rules(&full.played);
    bounds::SIX.holds("all", full.all);
    for of in &full.kinds {
        assert!(of.figures.median >= bounds::EACH, "{of:?}");
        let soon = of.figures.soon_in_use.unwrap_or(1.0);
        assert!(soon >= bounds::SOON_IN_USE, "{of:?}");
    }
    let behind = &results.far_behind;
    assert!(behind.len() <= bounds::FAR_BEHIND, "{}: {behind:?}", behind.len());
}

#[test]
fn the_pacer_holds_on_the_wide_family() {
    let full = WIDE.standing("full".parse().unwrap(), 2);
    keeps_the_rules(&full.played);
    bounds::WITHOUT_LATENCY.holds("without latency", full.without_latency);
    bounds::WITH_LATENCY.holds("with latency", full.with_latency);
    assert_eq!(full.all.unwrap().unfinished, 0, "{:?}", full.all);
}

#[test]
fn nobody_is_faster_than_the_ideal_and_who_knows_the_service_is_nearly_as_fast() {
    for tournament in [SIX, WIDE] {
        let results = run(tournament, &["full", "vector"]);
        for standing in results.policies.iter().chain(&results.bounds) {
            for one in &standing.played {
                // By chance, or as the first second of a rate is free.
                assert!(one.efficiency < 1.1, "{}: {one:?}", standing.policy);
            }
        }
        let [a, b] = [0, 1].map(|bound| results.bounds[bound].all.unwrap());
        assert!(a.median > 0.98 && a.worst_tenth > 0.88 && a.worst > 0.5, "{a:?}");
        assert!(b.median <= a.median && b.worst_tenth <= a.worst_tenth, "{b:?}");
        assert!(a.soon_in_use.unwrap() > 0.95, "{a:?}");
    }
}

#[test]
fn a_service_depends_on_the_seed_and_its_number_alone() {
    for family in [Family::Six, Family::Wide] {
        let draw = |seed, number| family.draw(seed, number).scenario;
        assert_eq!(draw(7, 40), draw(7, 40));
        assert_ne!(draw(7, 40), draw(8, 40));
        assert_ne!(draw(7, 40), draw(7, 52));
    }
    let play = |services| Tournament { services, ..SIX }.play(AnyPolicy::Vector, 2);
    assert_eq!(play(12), play(24)[..12]);
}

#[test]
fn every_service_is_a_file() {
    for number in 0..600 {
        for family in [Family::Six, Family::Wide] {
            let scenario = family.draw(SEED, number).scenario;
            let file = scenario.to_string();
            assert_eq!(file.parse::<Scenario>().unwrap(), scenario, "{file}");
        }
    }
}

#[test]
fn a_file_of_a_service_gives_the_same_result() {
    let results = run(Tournament { services: 24, ..WIDE }, &["full"]);
    assert_eq!(results.worst_files().count(), 10);
    for (one, (name, drawn)) in results.worst.iter().zip(results.worst_files()) {
        let report = drawn.scenario.to_string().parse::<Scenario>().unwrap().run();
        assert!(one.efficiency == 0.0 || report.efficiency() == one.efficiency, "{name}");
    }
}

#[test]
fn the_six_kinds_are_drawn_as_described() {
    let mut kinds: BTreeMap<Kind, u32> = BTreeMap::new();
    for number in 0..600 {
        let drawn = Family::Six.draw(SEED, number);
        *kinds.entry(drawn.kind).or_default() += 1;
        let Scenario { service, requests, interval, timeout, .. } = &drawn.scenario;
        let delay = service.delay.as_secs_f64();
        assert!((0.01..=1.0).contains(&delay) && service.latency.is_zero());
        assert!([0.0, 0.1, 0.3].contains(&service.jitter));
        assert!((100..=60_000).contains(requests) && interval.is_zero());
        assert!((timeout.as_secs_f64() - (8.0 * delay).max(1.0)).abs() < 1e-9);
        let most = service.concurrency.limit.into_iter().chain([service.concurrency.knee_start]);
        assert!(most.max().unwrap() <= 80);
        let at_twice = service.concurrency.knee_exp.powi(service.concurrency.knee_start as i32);
        assert!((1.0..=8.01).contains(&at_twice), "{at_twice}");
    }
    assert_eq!(kinds.values().copied().collect::<Vec<u32>>(), [100; 6]);
}

#[test]
fn the_wide_family_is_wide() {
    let drawn: Vec<Scenario> = (0..600).map(|n| Family::Wide.draw(SEED, n).scenario).collect();
    let count = |is: fn(&Scenario) -> bool| drawn.iter().filter(|one| is(one)).count();
    assert!((240..360).contains(&count(|one| one.service.latency.is_zero())));
    assert!(drawn.iter().all(|one| one.service.latency <= one.service.delay / 5));
    assert!(count(|one| one.connections > 1) > 120 && count(|one| one.connections == 1) > 300);
    assert!(drawn.iter().all(|one| (1..=4).contains(&one.connections)));
    assert!(count(|one| !one.interval.is_zero()) > 120);
    assert!(count(|one| one.service.concurrency.limit == Some(1)) > 10);
    assert!(count(|one| one.service.jitter > 0.4) > 30);
    assert!(count(|one| !one.pacer.budgets.is_empty()) == 50);
    assert!(count(|one| !one.service.budgets.is_empty()) == 100);
    assert!(
        count(|one| one.changes.iter().any(|change| {
            change.concurrency.as_ref().is_some_and(|limit| limit.limit == Some(0))
        })) == 100
    );
}
