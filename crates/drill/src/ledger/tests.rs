use super::{Arrival, End, Ledger, RetryAfter, Ticket};
use crate::{
    execution::Fate,
    limits::Limit,
    spec::{Concurrency, Spec},
    work::{Rule, Work, Write},
};
use axum::response::IntoResponse;
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn wall(now: Duration) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_000_000) + now
}

fn arrival(at: Duration) -> Arrival<'static> {
    let (credential, says_when) = ("anonymous", false);
    Arrival { credential, at, wall: wall(at), bytes: 10, affinity: false, says_when }
}

fn ledger(spec: Spec) -> Ledger {
    Ledger::new(Arc::new(spec))
}

fn one_at_a_time(retry_after: Duration) -> Spec {
    let concurrency = Some(Concurrency { limit: 1 });
    Spec { concurrency, retry_after: Some(retry_after), ..Spec::default() }
}

fn admit(ledger: &mut Ledger, at: Duration) -> Ticket {
    ledger.arrive(&arrival(at), at).unwrap()
}

fn records(keys: &[u128]) -> Work {
    let writes = keys.iter().map(|key| Write { key: *key, refusal: None }).collect();
    Work { writes, rule: Rule::Each, reply: Box::new(|_| ().into_response()) }
}

#[test]
fn records_are_counted_once_and_their_repetitions_apart() {
    let mut ledger = ledger(Spec::default());
    let ticket = admit(&mut ledger, ms(0));
    ledger.store(&ticket, &records(&[1, 2]));
    ledger.store(&ticket, &records(&[2, 3]));
    let counters = ledger.counters();
    assert_eq!((counters.records, counters.duplicates), (3, 1));
}

#[test]
fn every_request_is_counted_in_one_way() {
    let mut ledger = ledger(one_at_a_time(ms(1)));
    for end in [End::Accepted, End::Refused, End::Failed, End::Unavailable, End::Abandoned] {
        let ticket = admit(&mut ledger, ms(1));
        ledger.arrive(&arrival(ms(2)), ms(2)).unwrap_err();
        ledger.leave(&ticket, end, ms(5));
    }
    let mut hung = admit(&mut ledger, ms(6));
    ledger.hang(&mut hung);
    ledger.leave(&hung, End::Abandoned, ms(7));
    ledger.turn_away(ms(8), 10, ms(9));
    let seen = ledger.counters();
    let answers = [seen.accepted, seen.refused, seen.failed, seen.unavailable, seen.unauthorized];
    assert_eq!(answers, [1; 5]);
    assert_eq!((seen.abandoned, seen.dropped, seen.throttled.concurrency), (1, 1, 5));
    assert_eq!((seen.requests, seen.bytes), (12, 120));
    assert_eq!((seen.in_flight, seen.max_in_flight), (0, 1));
    assert_eq!((seen.first_request_ms, seen.last_answer_ms), (Some(1), Some(9)));
    assert_eq!(seen.elapsed_seconds, 0.008);
}

#[test]
fn a_retry_after_is_rounded_up_and_watched_as_it_was_sent() {
    let mut ledger = ledger(one_at_a_time(ms(1_200)));
    let _in_flight = admit(&mut ledger, ms(0));
    let throttle = ledger.arrive(&arrival(ms(0)), ms(0)).unwrap_err();
    assert_eq!(throttle.limit, Limit::Concurrency);
    assert_eq!(throttle.retry_after, Some(RetryAfter::Seconds(2)));
    ledger.arrive(&arrival(ms(1_999)), ms(1_999)).unwrap_err();
    assert_eq!(ledger.counters().inside_retry_after, 1);
    ledger.arrive(&arrival(ms(3_999)), ms(3_999)).unwrap_err();
    assert_eq!(ledger.counters().inside_retry_after, 1, "that one waited as told");
}

#[test]
fn a_date_names_a_whole_second_that_is_not_too_early() {
    let at = wall(ms(300));
    let date = RetryAfter::new(ms(1_000), true, at);
    assert_eq!(date, RetryAfter::Date(wall(ms(2_000))));
    assert_eq!(date.length(at), ms(1_700));
    assert_eq!(date.header(), "Mon, 12 Jan 1970 13:46:42 GMT");
}

#[test]
fn a_request_executes_for_as_long_as_declared_or_until_it_is_abandoned() {
    let spec = Spec { delay: ms(100), ..Spec::default() };
    let budget = crate::spec::Budget {
        kind: crate::spec::BudgetKind::ExecutionSeconds,
        limit: 10.0,
        window: Duration::from_secs(60),
    };
    let mut ledger = ledger(Spec { budgets: vec![budget], ..spec.clone() });
    let mut left = |leaves: u64| {
        let mut ticket = admit(&mut ledger, ms(0));
        assert_eq!(ticket.execute(&spec, 1), ms(100));
        ledger.leave(&ticket, End::Accepted, ms(leaves)).execution
    };
    assert_eq!(left(130), Some(ms(9_900)));
    assert_eq!(left(40), Some(ms(9_860)));
}

#[test]
fn what_is_in_flight_when_counters_start_again_counts_no_more() {
    let mut ledger = ledger(one_at_a_time(ms(1_000)));
    let ticket = admit(&mut ledger, ms(0));
    ledger.arrive(&arrival(ms(1)), ms(1)).unwrap_err();
    ledger.reset();
    ledger.store(&ticket, &records(&[1]));
    assert_eq!(ledger.counters().in_flight, 1);
    ledger.leave(&ticket, End::Accepted, ms(2));
    let ticket = admit(&mut ledger, ms(500));
    ledger.leave(&ticket, End::Accepted, ms(501));
    let seen = ledger.counters();
    assert_eq!((seen.requests, seen.accepted, seen.records, seen.in_flight), (1, 1, 0, 0));
    assert_eq!(seen.inside_retry_after, 0);
}

#[test]
fn the_same_seed_has_the_same_luck() {
    let fates = |seed| -> Vec<Fate> {
        let mut ledger = ledger(Spec { fail_share: 0.5, seed, ..Spec::default() });
        (0..100).map(|i| admit(&mut ledger, ms(i)).fate).collect()
    };
    assert_eq!(fates(1), fates(1));
    assert_ne!(fates(1), fates(2));
    assert!((30..70).contains(&fates(1).iter().filter(|fate| **fate == Fate::Failed).count()));
}
