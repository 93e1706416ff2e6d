use super::*;
use crate::Policy;

const ROUND_TRIP: Duration = Duration::from_millis(100);

fn controller(options: Options) -> Controller {
    Controller::new(Arc::new(options), Time::ZERO)
}

fn seconds(seconds: u64) -> Time {
    Duration::from_secs(seconds)
}

fn succeed(controller: &mut Controller, times: usize, at: Time) {
    for _ in 0..times {
        controller.wake(at);
        let started = controller.start(at);
        controller.succeeded(started, at);
    }
}

/// As many requests as may be in flight start, and succeed later.
fn full_round(controller: &mut Controller, at: Time) {
    let mut started = Vec::new();
    while controller.room(at).is_ok() {
        started.push(controller.start(at));
    }
    started.into_iter().for_each(|one| controller.succeeded(one, at + ROUND_TRIP));
}

fn throttle(controller: &mut Controller, at: Time) {
    controller.wake(at);
    let started = controller.start(at);
    controller.rejected(started, Rejection { retry_after: None, timed_out: false }, at);
}

fn seed() -> Controller {
    controller(Options { policy: Policy::Seed, ..Options::default() })
}

#[test]
fn the_example_of_the_design_with_its_times() {
    let mut aimd = seed();
    assert_eq!(aimd.level(), 26);
    succeed(&mut aimd, 3, seconds(0));
    assert_eq!(aimd.level(), 26, "enough successes, but too early");
    succeed(&mut aimd, 1, seconds(5));
    assert_eq!(aimd.level(), 28);
    for (step, level) in (30..=44).step_by(2).enumerate() {
        succeed(&mut aimd, 3, seconds(10 + 5 * step as u64));
        assert_eq!(aimd.level(), level);
    }
    throttle(&mut aimd, seconds(60));
    assert_eq!((aimd.level(), aimd.aimd.last_known_good), (22, 42));
    succeed(&mut aimd, 1, seconds(65));
    assert_eq!(aimd.level(), 22);
    for (step, level) in (26..=42).step_by(4).enumerate() {
        succeed(&mut aimd, 3, seconds(75 + 5 * step as u64));
        assert_eq!(aimd.level(), level, "fast recovery");
    }
    succeed(&mut aimd, 3, seconds(100));
    assert_eq!(aimd.level(), 44, "probing again");
    succeed(&mut aimd, 3, seconds(110));
    assert_eq!(aimd.level(), 46);
    aimd.wake(seconds(411));
    assert_eq!((aimd.level(), aimd.aimd.total_throttles), (26, 1), "idle: all but the total");
}

#[test]
fn growth_needs_time_and_successes() {
    let mut aimd = seed();
    succeed(&mut aimd, 2, seconds(60));
    assert_eq!(aimd.level(), 26, "time, but too few successes");
    succeed(&mut aimd, 1, seconds(60));
    assert_eq!(aimd.level(), 28);
}

#[test]
fn a_stale_level_is_replaced_by_the_current_one() {
    let mut aimd = seed();
    throttle(&mut aimd, seconds(10));
    assert_eq!((aimd.level(), aimd.aimd.last_known_good), (13, 24));
    (0..10).for_each(|step| succeed(&mut aimd, 1, seconds(30 + 30 * step)));
    succeed(&mut aimd, 1, seconds(311));
    assert!(aimd.aimd.last_known_good <= aimd.level());
}

#[test]
fn without_corrections_each_throttle_decreases() {
    let mut aimd = seed();
    let burst: Vec<Started> = (0..20).map(|_| aimd.start(seconds(1))).collect();
    for started in burst {
        aimd.rejected(started, Rejection { retry_after: None, timed_out: false }, seconds(2));
    }
    assert_eq!(aimd.level(), 1);
}

#[test]
fn disabled_means_fixed_at_the_maximum() {
    let mut fixed = controller(Options { enabled: false, ..Options::default() });
    throttle(&mut fixed, seconds(1));
    succeed(&mut fixed, 100, seconds(100));
    assert_eq!((fixed.level(), fixed.aimd.total_throttles), (52, 1));
}

#[test]
fn a_trial_comes_before_the_rest() {
    let mut full = controller(Options { start: Some(8), ..Options::default() });
    throttle(&mut full, seconds(1));
    assert_eq!(full.level(), 4);
    let trial = full.start(seconds(2));
    assert_eq!(full.room(seconds(2)), Err(Held::Asks(None)));
    full.ended(trial, false, seconds(2));
    assert!(full.room(seconds(2)).is_ok(), "given up: another one asks");
    let trial = full.start(seconds(2));
    full.succeeded(trial, seconds(3));
    assert_eq!(full.room(seconds(3)), Ok(full.level()));
}

#[test]
fn decisions_say_why() {
    let mut full = controller(Options { start: Some(8), ..Options::default() });
    throttle(&mut full, seconds(1));
    full.reset(Reason::Reset, seconds(2));
    let mut statistics = Statistics::default();
    full.describe(&mut statistics, seconds(2));
    let lines: Vec<String> = statistics.decisions.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "    0.000 s     0 → 8    start",
            "    1.000 s     8 → 4    throttled: by a limit that is not known",
            "    2.000 s     4 → 8    reset",
        ]
    );
}

#[test]
fn what_is_remembered_too_long_ago_is_passed_over() {
    let remembered = |at| Remembered {
        connection: "a".to_owned(),
        class: "b".to_owned(),
        level: 20,
        throttled: true,
        retry_after: Duration::ZERO,
        at,
    };
    let mut fresh = controller(Options::default());
    fresh.recall(&remembered(seconds(700)), seconds(1_000));
    assert_eq!((fresh.level(), fresh.remembered(1)), (20, (20, true)));
    let mut stale = controller(Options::default());
    stale.recall(&remembered(seconds(699)), seconds(1_000));
    assert_eq!(stale.level(), 1);
    let mut untried = controller(Options::default());
    untried.recall(&Remembered { throttled: false, ..remembered(seconds(1_000)) }, seconds(1_000));
    assert_eq!(untried.level(), 1, "a level that was never rejected is no limit");
}

#[test]
fn a_limit_is_shared_while_others_are_there() {
    let mut controller = controller(Options::default());
    let remembered = Remembered {
        connection: String::new(),
        class: String::new(),
        level: 18,
        throttled: true,
        retry_after: Duration::ZERO,
        at: Time::ZERO,
    };
    controller.recall(&remembered, Time::ZERO);
    controller.share(1, 2, seconds(1));
    assert_eq!(controller.level(), 9);
    controller.share(2, 3, seconds(2));
    assert_eq!(controller.level(), 6);
    controller.share(3, 1, seconds(3));
    (0..12).for_each(|round| full_round(&mut controller, seconds(4 + round)));
    assert_eq!(controller.level(), 18, "found without the others");
    let mut unlimited = self::controller(Options { start: Some(40), ..Options::default() });
    unlimited.share(1, 2, seconds(1));
    assert_eq!(unlimited.level(), 40, "nothing is known to be short");
}

#[test]
fn what_is_accepted_of_a_burst_is_the_limit_in_whatever_order_it_came() {
    let mut controller = controller(Options { start: Some(32), ..Options::default() });
    let ms = Duration::from_millis;
    let warm: Vec<Started> = (0..4).map(|_| controller.start(ms(0))).collect();
    warm.into_iter().for_each(|started| controller.succeeded(started, ms(100)));
    let mut burst: Vec<Started> = (0..32).map(|_| controller.start(ms(200))).collect();
    // The eighteenth needed a new connection, and came last.
    let late = burst.remove(17);
    let rejected = burst.split_off(20);
    let rejection = Rejection { retry_after: Some(seconds(2)), timed_out: false };
    for started in rejected.into_iter().chain([late]) {
        controller.rejected(started, rejection, ms(201));
    }
    burst.into_iter().for_each(|started| controller.succeeded(started, ms(300)));
    (0..9).for_each(|round| full_round(&mut controller, ms(2_300 + 200 * round)));
    assert_eq!((controller.belief.flight.map(|c| c.at()), controller.level()), (Some(20), 20));
}
