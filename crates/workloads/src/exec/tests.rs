use super::{Exec, ExecError};
use crate::tests::result;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    sync::{Arc, Barrier},
    thread,
    time::Duration,
};
use tidegate_core::{AnyWorkload, Run, RunError, Snapshot, workload::Prepared};

/// Leaves the run's index in `$i`.
const NEXT: &str = r#"read -r line || exit 0; i=${line#*:}; i=${i%%,*}"#;

fn prepare(command: &str, snapshot: &Value) -> Arc<dyn Prepared> {
    let exec = Arc::new(Exec::new(command).unwrap());
    AnyWorkload::prepare(exec, &Snapshot::freeze(snapshot)).unwrap()
}

fn sh(script: &str) -> Arc<dyn Prepared> {
    sh_with(script, &Value::Null)
}

fn sh_with(script: &str, snapshot: &Value) -> Arc<dyn Prepared> {
    prepare(&shlex::try_join(["sh", "-c", script]).unwrap(), snapshot)
}

/// Answers every run with what `answer` prints.
fn answering(answer: &str) -> Arc<dyn Prepared> {
    sh(&format!("read -r snapshot; while :; do {NEXT}; {answer}; done"))
}

fn run(index: u64) -> Run {
    within(index, Duration::from_secs(60))
}

fn within(index: u64, limit: Duration) -> Run {
    let mut run = Run::new(1, index);
    run.within(Some(limit));
    run
}

fn ask(prepared: &Arc<dyn Prepared>, index: u64) -> Result<String, RunError> {
    result(&**prepared, &mut run(index))
}

fn failure(prepared: &Arc<dyn Prepared>, index: u64) -> String {
    let error = ask(prepared, index).unwrap_err();
    assert!(!error.permanent);
    error.reason
}

#[test]
fn a_program_gets_the_snapshot_once_and_a_line_per_run() {
    let program = sh_with(
        &format!(
            r#"read -r s; while :; do {NEXT}; echo "{{\"index\":$i,\"result\":[$s,$line]}}"; done"#
        ),
        &json!({ "teams": [1, 2] }),
    );
    for index in [5, 6] {
        let seed = run(index).seed().to_string();
        let seen: Value =
            serde_json::from_str(&result(&*program, run(index).after(2)).unwrap()).unwrap();
        let line = json!({ "index": index, "seed": seed, "attempts": 2 });
        assert_eq!(seen, json!([{ "snapshot": { "teams": [1, 2] } }, line]));
    }
}

#[test]
fn numbers_and_categories_reach_the_run() {
    let program = answering(
        r#"echo "{\"index\":$i,\"numbers\":{\"a\":1.5,\"b\":2},\"categories\":{\"c\":\"red\"}}""#,
    );
    let mut run = run(3);
    assert_eq!(result(&*program, &mut run).unwrap(), "null");
    let emitted = run.finish().unwrap();
    assert!(emitted.numbers().eq([("a", 1.5), ("b", 2.0)]));
    assert!(emitted.categories().eq([("c", "red")]));
}

#[test]
fn a_program_may_fail_a_run_and_go_on() {
    let program = answering(
        r#"case $i in
        1) echo '{"index":1,"error":"no luck"}' ;;
        2) echo '{"index":2,"error":"no way","permanent":true}' ;;
        *) echo "{\"index\":$i,\"result\":$$}" ;; esac"#,
    );
    let process = ask(&program, 0).unwrap();
    assert_eq!(ask(&program, 1).unwrap_err(), RunError::new("no luck"));
    assert_eq!(ask(&program, 2).unwrap_err(), RunError::permanent("no way"));
    assert_eq!(ask(&program, 3).unwrap(), process);
}

#[test]
fn one_process_per_run_at_the_same_time_is_kept_running() {
    let program = answering(r#"echo "{\"index\":$i,\"result\":$$}""#);
    let start = Barrier::new(3);
    let processes: BTreeSet<_> = thread::scope(|scope| {
        let ask_many = || {
            start.wait();
            (0..50).map(|index| ask(&program, index).unwrap()).collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(ask_many)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!((1..=3).contains(&processes.len()), "{processes:?}");
}

#[test]
fn a_program_that_takes_too_long_is_replaced() {
    let program =
        answering(r#"if [ $i = 1 ]; then sleep 600; fi; echo "{\"index\":$i,\"result\":$$}""#);
    let first = ask(&program, 0).unwrap();
    let mut slow = within(1, Duration::from_millis(50));
    let reason = result(&*program, &mut slow).unwrap_err().reason;
    assert!(reason.contains("sh` timed out"), "{reason}");
    assert_ne!(ask(&program, 2).unwrap(), first);
}

#[test]
fn a_crash_is_reported_with_its_last_words() {
    let program = answering(
        r#"if [ $i = 1 ]; then echo "the sky fell" >&2; exit 3; fi; echo "{\"index\":$i}""#,
    );
    ask(&program, 0).unwrap();
    let reason = failure(&program, 1);
    assert!(
        reason.ends_with("ended without an answer, exit status: 3; stderr: the sky fell"),
        "{reason}"
    );
    ask(&program, 2).unwrap();
}

#[test]
fn only_the_end_of_a_long_stderr_is_kept() {
    let program = answering(
        r#"n=0; while [ $n -lt 2000 ]; do echo "line $n" >&2; n=$((n + 1)); done; exit 1"#,
    );
    let reason = failure(&program, 0);
    assert!(reason.ends_with("line 1999") && reason.len() < 4_096, "{reason}");
}

#[test]
fn a_program_that_ends_after_each_answer_serves_every_run() {
    let program =
        sh(&format!(r#"read -r snapshot; {NEXT}; echo "{{\"index\":$i,\"result\":$i}}""#));
    for index in 0..20 {
        assert_eq!(ask(&program, index).unwrap(), index.to_string());
    }
}

#[test]
fn what_is_no_answer_fails_the_run_alone() {
    let program = answering(
        r#"case $i in
        1) echo 'hello world' ;;
        2) echo '{"index":7,"result":1}' ;;
        3) echo '{"index":3,"numbers":{"x":NaN}}' ;;
        4) echo '{"index":4,"numbers":{"x":1e999}}' ;;
        5) echo '{"index":5,"reslut":1}' ;;
        *) echo "{\"index\":$i,\"result\":$i}" ;; esac"#,
    );
    let expected = [
        (1, "answered no valid line: expected value at line 1 column 1: `hello world`"),
        (2, "was asked for run 2 and answered run 7"),
        (3, "answered no valid line"),
        (4, "number out of range"),
        (5, "unknown field `reslut`"),
    ];
    for (index, problem) in expected {
        let reason = failure(&program, index);
        assert!(reason.contains(problem), "{reason}");
        assert_eq!(ask(&program, 9).unwrap(), "9");
    }
}

#[test]
fn a_line_without_end_is_refused() {
    let reason = failure(&answering("while :; do printf '%01000d' 0; done"), 0);
    assert!(reason.contains("bytes in one line"), "{reason}");
}

#[test]
fn a_program_that_does_not_listen_fails_the_run() {
    // Longer than a pipe holds, so that it cannot be written before stdin is closed.
    let long = json!("x".repeat(1 << 20));
    let reason = failure(&sh_with("exec sleep 600 < /dev/null", &long), 0);
    assert!(reason.contains("closed its stdin without an answer"), "{reason}");
    let mut deaf = within(0, Duration::from_millis(50));
    let reason = result(&*sh_with("exec sleep 600", &long), &mut deaf).unwrap_err().reason;
    assert!(reason.contains("timed out"), "{reason}");
}

#[cfg(unix)]
#[test]
fn processes_end_with_their_batch() {
    let program = answering(r#"echo "{\"index\":$i,\"result\":$$}""#);
    let pid = ask(&program, 0).unwrap().parse().ok().and_then(rustix::process::Pid::from_raw);
    let lives = || rustix::process::test_kill_process(pid.unwrap()).is_ok();
    assert!(lives());
    drop(program);
    assert!(!lives());
}

#[test]
fn a_command_must_name_a_program() {
    let error = |command: &str| Exec::new(command).unwrap_err();
    assert_eq!(error(" "), ExecError::Empty);
    assert_eq!(error("''"), ExecError::Empty);
    assert_eq!(error("sh -c 'x"), ExecError::Unclosed("sh -c 'x".to_owned()));
    let message = error("no-such-program --fast").to_string();
    assert!(message.starts_with("cannot find the program `no-such-program`"), "{message}");
    assert!(message.contains("in PATH, /"), "{message}");
    assert!(error("./no-such-program").to_string().contains("`./no-such-program`"));
}

#[test]
fn the_name_is_the_command_verbatim() {
    let exec = Exec::new("sh  -c 'exit 0'").unwrap();
    assert_eq!(AnyWorkload::name(&exec), "exec:sh  -c 'exit 0'");
}

#[test]
fn the_example_estimates_pi() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/pi.py");
    let program = prepare(&shlex::try_join(["python3", path]).unwrap(), &json!({ "darts": 4_000 }));
    let mut run = run(0);
    let hits = result(&*program, &mut run).unwrap();
    let emitted = run.finish().unwrap();
    assert!((3.0..3.3).contains(&emitted.numbers().next().unwrap().1), "{emitted:?}");
    assert_eq!(hits, ask(&program, 0).unwrap());
}
