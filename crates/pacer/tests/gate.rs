//! The gate: fair, cancel-safe, and it holds nothing while it waits.

use std::{future::Future, sync::Arc, time::Duration};
use tidegate_pacer::{
    Binding, Budget, BudgetKind, Clock, Gate, Hint, Options, Outcome, Pacer, Permit, Remaining,
    Time, TooLong,
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};

/// The time of a paused runtime.
struct Paused(Instant);

impl Clock for Paused {
    fn now(&self) -> Time {
        self.0.elapsed()
    }

    fn sleep_until(&self, time: Time) -> impl Future<Output = ()> + Send {
        sleep_until(self.0 + time)
    }
}

fn clock() -> Paused {
    Paused(Instant::now())
}

fn fixed(level: u32) -> Options {
    Options { max: level, start: Some(level), ..Options::default() }
}

fn gate(options: Options, connections: &[&str]) -> Gate {
    let names = connections.iter().map(|name| (*name).to_owned());
    Pacer::new(options, names).expect("options are in range").gate("any")
}

fn done(permit: Permit, clock: &Paused) {
    permit.end(Outcome::Succeeded, Hint::default(), clock.now());
}

fn throttled(permit: Permit, seconds: u64, clock: &Paused) {
    let retry_after = Some(Duration::from_secs(seconds));
    permit.end(Outcome::Throttled { retry_after }, Hint::default(), clock.now());
}

#[tokio::test(start_paused = true)]
async fn callers_are_let_through_in_their_order() {
    let (gate, clock) = (gate(fixed(1), &["a"]), Arc::new(clock()));
    let first = gate.start(&*clock).await.unwrap();
    let (arrived, mut order) = mpsc::unbounded_channel();
    for caller in 0..10 {
        let (gate, clock, arrived) = (gate.clone(), clock.clone(), arrived.clone());
        tokio::spawn(async move {
            let permit = gate.start(&*clock).await.unwrap();
            arrived.send(caller).unwrap();
            done(permit, &clock);
        });
        tokio::task::yield_now().await;
    }
    done(first, &clock);
    for caller in 0..10 {
        assert_eq!(order.recv().await, Some(caller));
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_gives_up_leaves_the_line() {
    let (gate, clock) = (gate(fixed(1), &["a"]), clock());
    let first = gate.start(&clock).await.unwrap();
    for _ in 0..3 {
        let waited = timeout(Duration::from_secs(1), gate.start(&clock)).await;
        assert!(waited.is_err());
    }
    drop(first);
    let second = gate.start(&clock).await.unwrap();
    assert_eq!(gate.statistics(clock.now())[0].in_flight, 1);
    drop(second);
    assert_eq!(gate.statistics(clock.now())[0].in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_retry_after_holds_no_permit() {
    let (gate, clock) = (gate(fixed(4), &["a"]), clock());
    throttled(gate.start(&clock).await.unwrap(), 30, &clock);
    let waiting = timeout(Duration::from_secs(29), gate.start(&clock)).await;
    assert!(waiting.is_err(), "inside the Retry-After");
    let statistics = gate.statistics(clock.now()).swap_remove(0);
    assert_eq!((statistics.in_flight, statistics.binding), (0, Binding::RetryAfter));
    assert!(gate.is_throttled(0, clock.now()));
    let permit = gate.start(&clock).await.unwrap();
    assert!(clock.now() >= Duration::from_secs(30) && clock.now() < Duration::from_secs(31));
    done(permit, &clock);
}

#[tokio::test(start_paused = true)]
async fn a_throttled_connection_is_passed_over() {
    let (gate, clock) = (gate(fixed(2), &["a", "b"]), clock());
    let one = gate.start(&clock).await.unwrap();
    let other = gate.start(&clock).await.unwrap();
    assert_eq!((one.connection(), other.connection()), (0, 1), "the one with the most room");
    done(other, &clock);
    throttled(one, 60, &clock);
    for _ in 0..2 {
        assert_eq!(gate.start(&clock).await.unwrap().connection(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn when_all_are_throttled_for_too_long_callers_are_told() {
    let options = Options { tolerance: Duration::from_secs(10), ..fixed(2) };
    let (gate, clock) = (gate(options, &["a", "b"]), clock());
    let permits = [gate.start(&clock).await.unwrap(), gate.start(&clock).await.unwrap()];
    for (permit, seconds) in permits.into_iter().zip([300, 60]) {
        throttled(permit, seconds, &clock);
    }
    let refused = gate.start(&clock).await.err();
    assert_eq!(refused, Some(TooLong(Duration::from_secs(60))));
    tokio::time::advance(Duration::from_secs(51)).await;
    assert_eq!(gate.start(&clock).await.unwrap().connection(), 1, "the earliest, within tolerance");
}

#[tokio::test(start_paused = true)]
async fn classes_have_their_own_levels_and_share_the_hint() {
    let pacer = Pacer::new(fixed(4), ["a".to_owned()]).unwrap();
    let (create, delete, clock) = (pacer.gate("create"), pacer.gate("delete"), clock());
    let hint = Hint { parallelism: Some(3), remaining: None };
    create.start(&clock).await.unwrap().end(Outcome::Succeeded, hint, clock.now());
    throttled(create.start(&clock).await.unwrap(), 0, &clock);
    assert_eq!(create.statistics(clock.now())[0].current_parallelism, 2);
    assert_eq!(delete.statistics(clock.now())[0].current_parallelism, 4);
    let held: Vec<Permit> = (0..3).map(|_| delete.try_start(clock.now()).unwrap()).collect();
    assert_eq!(create.try_start(clock.now()).err().unwrap().binding, Binding::Hint);
    drop(held);
    assert!(create.try_start(clock.now()).is_ok());
}

#[tokio::test(start_paused = true)]
async fn what_the_service_says_is_left_is_all_there_is() {
    let (gate, clock) = (gate(fixed(9), &["a"]), clock());
    let remaining = Remaining { requests: 2, reset: Duration::from_secs(60) };
    let hint = Hint { parallelism: None, remaining: Some(remaining) };
    gate.start(&clock).await.unwrap().end(Outcome::Succeeded, hint, clock.now());
    let _held = [gate.start(&clock).await.unwrap(), gate.start(&clock).await.unwrap()];
    let wait = gate.try_start(clock.now()).err().unwrap();
    assert_eq!((wait.binding, wait.until), (Binding::Quota, Some(Duration::from_secs(60))));
    let _third = gate.start(&clock).await.unwrap();
    assert!(clock.now() >= Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn budgets_make_callers_wait_before_the_service_does() {
    let window = Duration::from_secs(300);
    let budgets = vec![
        Budget { kind: BudgetKind::Requests, limit: 3.0, window },
        Budget { kind: BudgetKind::Concurrent, limit: 2.0, window: Duration::ZERO },
    ];
    let (gate, clock) = (gate(Options { budgets, ..fixed(9) }, &["a"]), clock());
    let held = [gate.start(&clock).await.unwrap(), gate.start(&clock).await.unwrap()];
    assert_eq!(gate.try_start(clock.now()).err().unwrap().binding, Binding::Concurrent);
    drop(held);
    drop(gate.start(&clock).await.unwrap());
    assert_eq!(gate.try_start(clock.now()).err().unwrap().binding, Binding::Requests);
    let _fourth = gate.start(&clock).await.unwrap();
    assert!(clock.now() >= window);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_threads_never_exceed_the_limit() {
    let (gate, clock) = (gate(fixed(8), &["a"]), Arc::new(clock()));
    let busy = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let callers = (0..64).map(|_| {
        let (gate, clock, busy) = (gate.clone(), clock.clone(), busy.clone());
        tokio::spawn(async move {
            for _ in 0..200 {
                let permit = gate.start(&*clock).await.unwrap();
                let now = busy.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                assert!(now < 8);
                tokio::task::yield_now().await;
                busy.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                done(permit, &clock);
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_process_stays_out_of_a_retry_after_too() {
    let (old, clock) = (gate(fixed(4), &["a"]), clock());
    throttled(old.start(&clock).await.unwrap(), 30, &clock);
    tokio::time::advance(Duration::from_secs(10)).await;
    let remembered = old.remembered(clock.now());
    tokio::time::advance(Duration::from_secs(5)).await;
    let new = gate(fixed(4), &["a"]);
    new.recall(&remembered, clock.now());
    drop(new.start(&clock).await.unwrap());
    assert!(clock.now() >= Duration::from_secs(30) && clock.now() < Duration::from_secs(31));
}

#[tokio::test(start_paused = true)]
async fn a_destination_that_never_answers_leaves_room_for_the_others() {
    let pacer = Pacer::new(fixed(40), ["a".to_owned()]).unwrap();
    let names: Vec<String> = (0..10).map(|n| format!("write {n}")).collect();
    let gates: Vec<Gate> = names.iter().map(|name| pacer.gate_to(name)).collect();
    let now = clock().now();
    let start = |gate: &Gate| std::iter::from_fn(|| gate.try_start(now).ok()).collect::<Vec<_>>();
    let hanging = start(&gates[0]);
    assert_eq!(hanging.len(), 30, "a quarter is for those that come");
    let one = start(&gates[1]);
    assert_eq!(one.len(), 10, "all together stay below the maximum");
    drop((hanging, one));
    // All at once, each has its part; the one that hangs keeps no more than that.
    let mut held: Vec<Vec<Permit>> = gates.iter().map(|_| Vec::new()).collect();
    while let Some(at) = (0..10).filter(|at| held[*at].len() < 4).min_by_key(|at| held[*at].len()) {
        held[at].push(gates[at].try_start(now).unwrap_or_else(|wait| panic!("{at}: {wait:?}")));
    }
    assert!(gates.iter().all(|gate| gate.try_start(now).is_err()));
    held.iter_mut().skip(1).for_each(Vec::clear);
    for gate in &gates[1..] {
        let part = start(gate);
        assert!(part.len() >= 4, "{}", part.len());
    }
}

#[tokio::test(start_paused = true)]
async fn what_one_destination_is_refused_slows_down_no_other_and_can_be_forgotten() {
    let pacer = Pacer::new(fixed(8), ["a".to_owned()]).unwrap();
    let (one, other, clock) = (pacer.gate_to("one"), pacer.gate_to("other"), clock());
    for _ in 0..20 {
        let permit = one.start(&clock).await.unwrap();
        permit.end(Outcome::TimedOut, Hint::default(), clock.now());
        permit_ok(&other, &clock).await;
    }
    let level = |gate: &Gate| gate.statistics(clock.now())[0].current_parallelism;
    assert!(level(&one) < 8, "{}", level(&one));
    assert_eq!((level(&other), other.statistics(clock.now())[0].rate), (8, None));
    // What the service asks of the caller is heeded by all.
    throttled(one.start(&clock).await.unwrap(), 60, &clock);
    assert_eq!(other.try_start(clock.now()).err().unwrap().binding, Binding::RetryAfter);
    pacer.forget("one");
    assert_eq!(level(&pacer.gate_to("one")), 8);
}

async fn permit_ok(gate: &Gate, clock: &Paused) {
    done(gate.start(clock).await.expect("it is open"), clock);
}
