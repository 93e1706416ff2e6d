use crate::builtin;
use serde_json::{Value, json};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};
use tidegate_core::{InvalidSnapshot, Run, RunError, Snapshot, workload::Prepared};

pub fn prepare(name: &str, snapshot: &Value) -> Result<Arc<dyn Prepared>, InvalidSnapshot> {
    builtin().get(name).unwrap().prepare(&Snapshot::freeze(snapshot))
}

/// What is wrong with a snapshot, as people see it.
pub fn refusal(name: &str, snapshot: &Value) -> String {
    prepare(name, snapshot).err().map(|error| error.to_string()).unwrap_or_default()
}

pub fn result(prepared: &dyn Prepared, run: &mut Run) -> Result<String, RunError> {
    let mut result = Vec::new();
    prepared.run(run, &mut result).map(|()| String::from_utf8(result).unwrap())
}

#[test]
fn every_example_can_be_run() {
    for workload in builtin().iter() {
        let snapshot: Value = toml::from_str(workload.example()).unwrap();
        let prepared = workload.clone().prepare(&Snapshot::freeze(&snapshot)).unwrap();
        result(&*prepared, &mut Run::new(1, 0)).unwrap();
        assert!(!workload.about().is_empty(), "{}", workload.name());
    }
}

#[test]
fn the_small_workloads_need_no_snapshot() {
    for name in ["noop", "sleep", "spin", "flaky"] {
        for snapshot in [Value::Null, json!({})] {
            prepare(name, &snapshot).unwrap();
        }
        let message = refusal(name, &json!({ "sm": 1 }));
        assert!(message.contains("unknown field `sm`"), "{name}: {message}");
    }
}

#[test]
fn noop_yields_the_number_that_it_emits() {
    let noop = prepare("noop", &Value::Null).unwrap();
    let mut run = Run::new(1, 0);
    let value = result(&*noop, &mut run).unwrap();
    let emitted = run.finish().unwrap();
    assert!(emitted.numbers().eq([("value", value.parse().unwrap())]));
}

#[test]
fn a_wait_ends_at_the_deadline() {
    for name in ["sleep", "spin"] {
        let hour = prepare(name, &json!({ "ms": 3_600_000 })).unwrap();
        let mut run = Run::new(1, 0);
        run.within(Some(Duration::from_millis(1)));
        assert_eq!(result(&*hour, &mut run).unwrap_err().reason, "timed out: the run takes 3600s");
    }
}

#[test]
fn a_wait_has_bounds() {
    let message = refusal("sleep", &json!({ "ms": -1 }));
    assert_eq!(message, "invalid snapshot at `ms`: -1 is not between 0 and 3600000");
}

#[test]
fn flaky_runs_fail_at_first_and_then_yield_what_noop_yields() {
    let flaky = prepare("flaky", &json!({ "fail": 0.5, "attempts": 2 })).unwrap();
    let noop = prepare("noop", &Value::Null).unwrap();
    let at = |index, attempts| result(&*flaky, Run::new(1, index).after(attempts));
    let failed = (0..1_000).filter(|&index| at(index, 1).is_err()).count();
    assert!((400..600).contains(&failed), "{failed}");
    for index in 0..1_000 {
        assert_eq!(at(index, 0).is_err(), at(index, 1).is_err());
        assert_eq!(at(index, 2), result(&*noop, &mut Run::new(1, index)));
    }
}

#[test]
fn flaky_runs_die_or_panic_on_demand() {
    let dead = prepare("flaky", &json!({ "fail": 0, "dead": 1 })).unwrap();
    assert!(result(&*dead, Run::new(1, 0).after(9)).unwrap_err().permanent);
    let panics = prepare("flaky", &json!({ "fail": 0, "panic": 1 })).unwrap();
    let run = |attempts| result(&*panics, Run::new(1, 0).after(attempts));
    assert!(catch_unwind(AssertUnwindSafe(|| run(0))).is_err());
    run(1).unwrap();
}

#[test]
fn shares_of_faults_must_add_up() {
    assert!(refusal("flaky", &json!({ "dead": 2 })).contains("`dead`: 2 is no share"));
    assert!(refusal("flaky", &json!({ "dead": 0.6, "panic": 0.6 })).contains("more than all runs"));
}
