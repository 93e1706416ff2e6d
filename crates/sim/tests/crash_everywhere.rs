//! One worker crashes at every single await of its life; another finishes its work.

use std::time::Duration;
use tidegate_core::{Keep, RetryPolicy};
use tidegate_sim::{Fate, Plan, check_plan};

fn plan(polls: u64) -> Plan {
    let mut plan = Plan::from_seed(7);
    plan.batches.truncate(1);
    let batch = &mut plan.batches[0];
    batch.runs = 60;
    batch.keep = Keep::All;
    batch.retry = RetryPolicy {
        max_attempts: 3,
        base: Duration::from_millis(5),
        cap: Duration::from_millis(20),
    };
    batch.behaviour.fail = 0.2;
    batch.behaviour.permanent = 0.05;
    batch.behaviour.micros = 3_000;
    batch.behaviour.deadly = None;
    plan.travels.clear();
    plan.workers.truncate(1);
    let worker = &mut plan.workers[0];
    worker.hands = 2;
    worker.flush_runs = 7;
    worker.flush_after = Duration::from_millis(10);
    worker.range_length = Some(10);
    worker.lease = Duration::from_millis(40);
    worker.faults.failing = 0.0;
    worker.faults.slow = 0.0;
    worker.fate = Fate::Crashes { polls };
    plan
}

#[test]
fn a_crash_at_any_await_loses_nothing() {
    let calm = check_plan(&plan(u64::MAX)).unwrap();
    let polls = calm.polls[0];
    assert!(polls > 100, "only {polls} awaits: the test proves little");
    for crash_at in 1..=polls {
        check_plan(&plan(crash_at)).unwrap_or_else(|broken| panic!("await {crash_at}: {broken}"));
    }
}
