use super::*;
use proptest::prelude::*;

const WISHES: Wishes = Wishes {
    duration: Duration::from_secs(600),
    processes: 4,
    kill_every: Some(Duration::from_secs(2)),
    crash_every: Some(Duration::from_secs(20)),
    failovers: 2,
    lease: Duration::from_secs(5),
};

#[test]
fn the_same_seed_draws_the_same_plan_and_another_seed_another() {
    assert_eq!(Plan::draw(7, &WISHES), Plan::draw(7, &WISHES));
    assert_ne!(Plan::draw(7, &WISHES), Plan::draw(8, &WISHES));
}

#[test]
fn nothing_is_planned_that_nobody_asked_for() {
    let none = Wishes { kill_every: None, crash_every: None, failovers: 0, ..WISHES };
    assert_eq!(Plan::draw(7, &none), Plan::default());
}

proptest! {
    #[test]
    fn a_plan_keeps_to_the_wishes(seed: u64) {
        let plan = Plan::draw(seed, &WISHES);
        prop_assert!((270..=330).contains(&plan.processes.len()), "{}", plan.processes.len());
        prop_assert!(plan.processes.is_sorted_by_key(|(at, ..)| *at));
        prop_assert!(plan.server.is_sorted_by_key(|(at, _)| *at));
        let is_failover = |fault: &&(Duration, ServerFault)| matches!(fault.1, ServerFault::FailOver(..));
        prop_assert_eq!(plan.server.iter().filter(is_failover).count(), 2);
        let crashes = plan.server.len() - 2;
        prop_assert!((20..=40).contains(&crashes), "{}", crashes);
        for (at, place, fault) in &plan.processes {
            prop_assert!(*at < WISHES.duration && *place < 4);
            if let ProcessFault::Stop(time) = fault {
                prop_assert!(*time > WISHES.lease);
            }
        }
    }
}
