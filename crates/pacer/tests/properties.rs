//! What holds whatever a service does.

use proptest::prelude::*;
use std::time::Duration;
use tidegate_pacer::{Hint, Options, Outcome, Pacer, Permit, Policy, Remaining, Time};

/// One thing that happens.
#[derive(Clone, Debug)]
enum Step {
    Start,
    End { which: usize, outcome: Outcome, hint: Hint },
    Drop { which: usize },
    Pass(Duration),
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        6 => Just(Outcome::Succeeded),
        2 => proptest::option::of(0u64..20_000).prop_map(|ms| Outcome::Throttled {
            retry_after: ms.map(Duration::from_millis)
        }),
        1 => Just(Outcome::TimedOut),
        1 => Just(Outcome::Failed),
    ]
}

fn hint() -> impl Strategy<Value = Hint> {
    let remaining = (0u64..50, 0u64..30_000)
        .prop_map(|(requests, ms)| Remaining { requests, reset: Duration::from_millis(ms) });
    prop_oneof![
        9 => Just(Hint::default()),
        1 => (proptest::option::of(0u32..100), proptest::option::of(remaining))
            .prop_map(|(parallelism, remaining)| Hint { parallelism, remaining }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => Just(Step::Start),
        6 => (any::<usize>(), outcome(), hint())
            .prop_map(|(which, outcome, hint)| Step::End { which, outcome, hint }),
        1 => any::<usize>().prop_map(|which| Step::Drop { which }),
        4 => (0u64..2_000).prop_map(|ms| Step::Pass(Duration::from_millis(ms))),
        1 => (0u64..1_000).prop_map(|s| Step::Pass(Duration::from_secs(s))),
    ]
}

fn options() -> impl Strategy<Value = Options> {
    let policy = prop_oneof![Just(Policy::Full), Just(Policy::Seed)];
    (1u32..100, 1u32..10, 1u32..10, 0.1..0.9, policy).prop_map(
        |(max, min, increase_rate, decrease_factor, policy)| Options {
            max,
            min_parallelism: min.min(max),
            increase_rate,
            decrease_factor,
            policy,
            ..Options::default()
        },
    )
}

proptest! {
    #[test]
    fn the_limit_stays_in_its_range_and_nothing_is_sent_inside_a_retry_after(
        options in options(),
        steps in proptest::collection::vec(step(), 1..400),
    ) {
        let (min, max) = (options.min_parallelism, options.max);
        let pacer = Pacer::new(options, ["a".to_owned(), "b".to_owned()]).unwrap();
        let gate = pacer.gate("any");
        let mut now = Time::ZERO;
        let mut left_alone = [Time::ZERO; 2];
        let mut permits: Vec<Permit> = Vec::new();
        for step in steps {
            match step {
                Step::Start => {
                    if let Ok(permit) = gate.try_start(now) {
                        prop_assert!(now >= left_alone[permit.connection()]);
                        permits.push(permit);
                    }
                }
                Step::End { which, outcome, hint } if !permits.is_empty() => {
                    let permit = permits.swap_remove(which % permits.len());
                    if let Outcome::Throttled { retry_after: Some(wait) } = outcome {
                        let until = &mut left_alone[permit.connection()];
                        *until = (*until).max(now + wait);
                    }
                    permit.end(outcome, hint, now);
                }
                Step::Drop { which } if !permits.is_empty() => {
                    drop(permits.swap_remove(which % permits.len()));
                }
                Step::Pass(time) => now += time,
                _ => {}
            }
            let mut in_flight = 0;
            for statistics in gate.statistics(now) {
                prop_assert!((min..=max).contains(&statistics.current_parallelism));
                in_flight += statistics.in_flight as usize;
            }
            prop_assert_eq!(in_flight, permits.len());
        }
    }

    #[test]
    fn a_burst_of_throttles_decreases_once(burst in 2usize..60, after in 0u64..1_000) {
        let options = Options { max: 64, start: Some(64), ..Options::default() };
        let gate = Pacer::new(options, ["a".to_owned()]).unwrap().gate("any");
        let permits: Vec<Permit> =
            (0..burst).map(|_| gate.try_start(Time::ZERO).unwrap()).collect();
        let now = Duration::from_millis(after);
        for permit in permits {
            permit.end(Outcome::Throttled { retry_after: None }, Hint::default(), now);
        }
        let statistics = gate.statistics(now).swap_remove(0);
        prop_assert_eq!(statistics.current_parallelism, 32);
        prop_assert_eq!(statistics.total_throttle_events, burst as u64);
    }

    #[test]
    fn late_answers_undo_what_their_silence_caused(late in 1usize..20, after in 700u64..60_000) {
        let options = Options { max: 64, start: Some(20), ..Options::default() };
        let gate = Pacer::new(options, ["a".to_owned()]).unwrap().gate("any");
        let level = |now| gate.statistics(now)[0].current_parallelism;
        let ms = Duration::from_millis;
        let answer = |permits: Vec<Permit>, now| {
            permits.into_iter().for_each(|one| one.end(Outcome::Succeeded, Hint::default(), now));
        };
        answer((0..12).map(|_| gate.try_start(ms(0)).unwrap()).collect(), ms(100));
        let before = level(ms(100));
        let silent: Vec<Permit> = (0..late).map(|_| gate.try_start(ms(200)).unwrap()).collect();
        let _ = gate.try_start(ms(200 + after));
        answer(silent, ms(300 + after));
        prop_assert!(level(ms(300 + after)) >= before);
    }

    #[test]
    fn the_same_steps_lead_to_the_same_decisions(steps in proptest::collection::vec(step(), 1..200)) {
        let run = || {
            let gate = Pacer::new(Options::default(), ["a".to_owned()]).unwrap().gate("any");
            let (mut now, mut permits) = (Time::ZERO, Vec::new());
            for step in &steps {
                match step {
                    Step::Start => permits.extend(gate.try_start(now)),
                    Step::End { which, outcome, hint } if !permits.is_empty() => {
                        let permit: Permit = permits.swap_remove(which % permits.len());
                        permit.end(*outcome, *hint, now);
                    }
                    Step::Pass(time) => now += *time,
                    _ => {}
                }
            }
            gate.statistics(now)
        };
        prop_assert_eq!(run(), run());
    }
}
