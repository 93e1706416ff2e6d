use super::{Account, Accounts, Limit, Quota};
use crate::spec::{Budget, BudgetKind, Concurrency, Rate, Spec};
use std::time::Duration;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn budget(kind: BudgetKind, limit: f64, seconds: u64) -> Spec {
    let budget = Budget { kind, limit, window: Duration::from_secs(seconds) };
    Spec { budgets: vec![budget], ..Spec::default() }
}

#[test]
fn a_place_in_flight_is_free_as_soon_as_its_request_leaves() {
    let spec = Spec { concurrency: Some(Concurrency { limit: 2 }), ..Spec::default() };
    let mut account = Account::new(&spec);
    assert_eq!(account.arrive(ms(0)), Ok(()));
    assert_eq!(account.arrive(ms(0)), Ok(()));
    assert_eq!(account.arrive(ms(1)), Err(Limit::Concurrency));
    account.leave(ms(2), ms(2));
    assert_eq!(account.arrive(ms(2)), Ok(()));
}

#[test]
fn the_rate_counts_rejected_requests() {
    let spec = Spec { rate: Some(Rate { per_second: 2 }), ..Spec::default() };
    let mut account = Account::new(&spec);
    assert_eq!(account.arrive(ms(0)), Ok(()));
    assert_eq!(account.arrive(ms(500)), Ok(()));
    assert_eq!(account.arrive(ms(999)), Err(Limit::Rate));
    // The first has left the window, but the rejected one is in it.
    assert_eq!(account.arrive(ms(1000)), Err(Limit::Rate));
    assert_eq!(account.room_in(Limit::Rate, ms(1000)), ms(999));
    assert_eq!(account.arrive(ms(1999)), Ok(()));
}

#[test]
fn the_rate_counts_what_concurrency_rejects() {
    let limits = (Some(Concurrency { limit: 1 }), Some(Rate { per_second: 2 }));
    let spec = Spec { concurrency: limits.0, rate: limits.1, ..Spec::default() };
    let mut account = Account::new(&spec);
    assert_eq!(account.arrive(ms(0)), Ok(()));
    assert_eq!(account.arrive(ms(1)), Err(Limit::Concurrency));
    account.leave(ms(2), ms(2));
    assert_eq!(account.arrive(ms(3)), Err(Limit::Rate));
}

#[test]
fn a_budget_of_requests_slides_and_counts_only_accepted_ones() {
    let mut account = Account::new(&budget(BudgetKind::Requests, 2.0, 10));
    assert_eq!(account.arrive(ms(0)), Ok(()));
    assert_eq!(account.arrive(ms(4_000)), Ok(()));
    assert_eq!(account.arrive(ms(9_999)), Err(Limit::Budget(0)));
    assert_eq!(account.room_in(Limit::Budget(0), ms(9_999)), ms(1));
    assert_eq!(account.arrive(ms(10_000)), Ok(()));
    assert_eq!(account.arrive(ms(10_001)), Err(Limit::Budget(0)));
    assert_eq!(account.arrive(ms(14_000)), Ok(()));
}

#[test]
fn execution_time_is_counted_when_it_ends() {
    let mut account = Account::new(&budget(BudgetKind::ExecutionSeconds, 1.0, 10));
    assert_eq!(account.arrive(ms(0)), Ok(()));
    assert_eq!(account.arrive(ms(0)), Ok(()));
    account.leave(ms(600), ms(600));
    assert_eq!(account.standing(ms(600)).execution, Some(ms(400)));
    assert_eq!(account.arrive(ms(700)), Ok(()));
    account.leave(ms(900), ms(900));
    assert_eq!(account.arrive(ms(1_000)), Err(Limit::Budget(0)));
    assert_eq!(account.room_in(Limit::Budget(0), ms(1_000)), ms(9_600));
    assert_eq!(account.arrive(ms(10_600)), Ok(()));
}

#[test]
fn the_quota_is_the_first_budget_of_requests_or_else_the_rate() {
    let rate = Some(Rate { per_second: 5 });
    let mut account = Account::new(&Spec { rate, ..budget(BudgetKind::Requests, 100.0, 60) });
    assert_eq!(account.arrive(ms(0)), Ok(()));
    let quota = Quota { limit: 100, remaining: 99, reset_in: ms(59_500) };
    assert_eq!(account.standing(ms(500)).quota, Some(quota));
    let mut account = Account::new(&Spec { rate, ..Spec::default() });
    let quota = Quota { limit: 5, remaining: 5, reset_in: ms(0) };
    assert_eq!(account.standing(ms(500)).quota, Some(quota));
}

#[test]
fn a_request_inside_a_retry_after_is_noticed_unless_it_was_under_way() {
    let mut account = Account::new(&Spec::default());
    assert!(!account.is_held(ms(100), ms(50)));
    account.hold(ms(100), ms(1_000));
    assert!(!account.is_held(ms(99), ms(50)), "arrived before");
    assert!(!account.is_held(ms(150), ms(50)), "sent before the client could know");
    assert!(account.is_held(ms(151), ms(50)));
    assert!(account.is_held(ms(1_099), ms(50)));
    assert!(!account.is_held(ms(1_100), ms(50)), "waited as told");
}

#[test]
fn a_further_rejection_extends_a_retry_after_and_gives_no_new_grace() {
    let mut account = Account::new(&Spec::default());
    account.hold(ms(0), ms(1_000));
    account.hold(ms(900), ms(1_000));
    assert!(account.is_held(ms(910), ms(50)));
    assert!(account.is_held(ms(1_899), ms(50)));
    account.hold(ms(1_900), ms(1_000));
    assert!(!account.is_held(ms(1_910), ms(50)), "a new one has its own grace");
}

#[test]
fn credentials_do_not_share_limits() {
    let spec = Spec { concurrency: Some(Concurrency { limit: 1 }), ..Spec::default() };
    let mut accounts = Accounts::default();
    let (one, other) = (accounts.open("one", &spec), accounts.open("other", &spec));
    assert_eq!(accounts.get(one).arrive(ms(0)), Ok(()));
    assert_eq!(accounts.get(other).arrive(ms(0)), Ok(()));
    assert_eq!(accounts.open("one", &spec), one);
    assert_eq!(accounts.get(one).arrive(ms(0)), Err(Limit::Concurrency));
}

#[test]
fn clearing_keeps_what_is_in_flight() {
    let limited = budget(BudgetKind::Requests, 1.0, 10);
    let spec = Spec { concurrency: Some(Concurrency { limit: 2 }), ..limited };
    let mut account = Account::new(&spec);
    assert_eq!(account.arrive(ms(0)), Ok(()));
    account.clear();
    assert_eq!(account.arrive(ms(0)), Ok(()));
    account.clear();
    assert_eq!(account.arrive(ms(0)), Err(Limit::Concurrency));
}
