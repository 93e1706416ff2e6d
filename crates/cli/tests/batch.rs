//! `tidegate batch`, `workload`, `migrate` and `completions`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use serde_json::Value;
use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};
use support::Place;

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A batch whose failed runs settle later than their neighbors, in many small pages.
fn with_retries(place: &Place) -> Vec<Value> {
    place.write("flaky.toml", "fail = 0.3\n");
    let args = ["run", "flaky", "--runs", "200", "--snapshot", "flaky.toml", "--flush-runs", "9"];
    place.ok(&args);
    lines(&place.ok(&["batch", "results", "1"]))
}

#[test]
fn results_are_in_order_even_after_retries() {
    let place = Place::new();
    let all = with_retries(&place);
    let indexes: Vec<_> = all.iter().map(|line| line["index"].as_u64().unwrap()).collect();
    assert_eq!(indexes, (0..200).collect::<Vec<_>>());

    place.ok(&["run", "noop", "--runs", "200"]);
    assert_eq!(all, lines(&place.ok(&["batch", "results", "2"])), "attempts leave no trace");

    let part = lines(&place.ok(&["batch", "results", "1", "--from", "57", "--limit", "20"]));
    assert_eq!(part, all[57..77]);
}

#[test]
fn a_replay_is_identical() {
    let place = Place::new();
    for line in with_retries(&place).iter().step_by(23) {
        let replayed = place.json(&["batch", "replay", &format!("1#{}", line["index"])]);
        assert_eq!(replayed["identical"], true);
        assert_eq!(replayed["result"], line["result"]);
        assert_eq!(replayed["numbers"]["value"][0].as_f64(), line["result"].as_f64());
    }
}

#[test]
fn a_replay_that_differs_says_so() {
    let place = Place::new();
    place.ok(&["run", "noop", "--runs", "3", "--range-length", "3"]);
    let store = rusqlite::Connection::open(place.path("tidegate.db")).unwrap();
    store.execute("UPDATE page SET results = '[1,2,3]'", []).unwrap();
    let said = place.tidegate(&["batch", "replay", "1#1"]);
    assert_eq!((said.code, &said.json()["identical"]), (1, &false.into()));
    assert!(said.stderr.contains("run 1#1: differs from the stored result: 2"), "{}", said.stderr);
}

#[test]
fn a_replay_without_a_stored_result_has_nothing_to_compare_with() {
    let place = Place::new();
    place.ok(&["run", "noop", "--runs", "3", "--keep", "none"]);
    let said = place.tidegate(&["batch", "replay", "1#2"]);
    assert_eq!((said.code, &said.json()["identical"]), (0, &Value::Null));
    assert!(said.stderr.contains("with --keep none it is not stored"));
    assert_eq!(place.ok(&["batch", "results", "1"]), "");
}

#[test]
fn a_batch_is_shown() {
    let place = Place::new();
    place.write("dead.toml", "fail = 0\ndead = 0.2\n");
    place.tidegate(&["run", "flaky", "--runs", "20", "--snapshot", "dead.toml"]);
    let shown = place.ok(&["batch", "show", "1"]);
    let stable: Vec<_> = shown.lines().filter(|line| !line.contains(" ago")).collect();
    insta::assert_snapshot!(stable.join("\n"), @r"
    batch 1 of flaky
      completed with failures
      20 of 20 runs (100.0 %), 4 dead
      seed 1, snapshot b48f68370f80, keep all, 5 attempts, time-out 1 h 0 min
      digest 44db0ffdc696194b31428440a2ce4753

                 mean ± 95 %       sd      min      5 %     25 %     50 %     75 %     95 %      max  count
    value  2.039e9 ± 4.559e8  9.304e8  2.059e8  2.059e8  1.400e9  1.958e9  2.901e9  3.218e9  3.218e9     16

    value
        ▃▃        ▃▃▃▃          ▃▃  ▃▃  ▃▃▃▃▃▃    ▃▃▃▃        ▃▃██    ▆▆
        2.059e8                                                  3.218e9

    exceptions
      4 dead: died, as the snapshot asks (1#0, 1#4, 1#8, …)
    ");
}

#[test]
fn batches_are_listed_newest_first() {
    let place = Place::new();
    for seed in ["1", "2", "3"] {
        place.ok(&["submit", "noop", "--runs", "10", "--seed", seed]);
    }
    place.ok(&["batch", "cancel", "2"]);
    let ids = |args: &[&str]| -> Vec<i64> {
        let listed = place.json(&[&["batch", "list"], args].concat());
        listed.as_array().unwrap().iter().map(|batch| batch["batch"].as_i64().unwrap()).collect()
    };
    assert_eq!(ids(&[]), [3, 2, 1]);
    assert_eq!(ids(&["--state", "running"]), [3, 1]);
    assert_eq!(ids(&["--limit", "1"]), [3]);
    let refused = place.tidegate(&["batch", "cancel", "2"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (1, ""));
    assert!(refused.stderr.contains("batch 2 is cancelled, not running"), "{}", refused.stderr);
}

#[test]
fn a_reader_may_have_enough() {
    let place = Place::new();
    place.ok(&["run", "noop", "--runs", "50k"]);
    let mut command = place.command(&["batch", "results", "1"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.starts_with("{\"index\":0,"), "{first}");
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

#[test]
fn workloads_are_listed_and_shown() {
    let place = Place::new();
    insta::assert_snapshot!(place.ok(&["workload", "list"]), @r"
    name        about
    bingo       teams race over a board of tiles: who wins, by how much, when?
    flaky       fails, panics or dies in some of its runs: for drills
    noop        draws one number: measures the cost of everything but the run
    sleep       sleeps for some milliseconds, like a run that waits for others
    spin        keeps a core busy for some milliseconds, like a run that computes
    --exec CMD  any program: one line of JSON in, one line out, per run
    ");
    place.write("event.toml", place.ok(&["workload", "show", "bingo"]));
    let digest = |args: &[&str]| {
        let base = ["run", "bingo", "--runs", "20", "--store", "memory:"];
        place.json(&[base.as_slice(), args].concat())["digest"].clone()
    };
    assert_eq!(digest(&[]), digest(&["--snapshot", "event.toml"]));
}

#[test]
fn migrate_creates_and_prints() {
    let place = Place::new();
    let script = place.ok(&["migrate", "--print"]);
    assert!(script.contains("CREATE TABLE"), "{script}");
    let script = place.ok(&["migrate", "--print", "--store", "postgres://nobody@nowhere/at-all"]);
    assert!(script.contains("create table"), "no server is needed: {script}");
    assert!(place.files().is_empty(), "printing creates nothing");
    assert!(place.tidegate(&["migrate"]).stderr.starts_with("created the store tidegate.db: 0001"));
    assert!(place.tidegate(&["migrate"]).stderr.contains("up to date"));
    assert_eq!(place.json(&["batch", "list"]), Value::Array(Vec::new()));
}

#[test]
fn every_command_has_examples() {
    let place = Place::new();
    for args in [
        ["run"].as_slice(),
        &["submit"],
        &["worker"],
        &["batch"],
        &["batch", "list"],
        &["batch", "show"],
        &["batch", "watch"],
        &["batch", "results"],
        &["batch", "replay"],
        &["batch", "cancel"],
        &["batch", "retry"],
        &["workload"],
        &["workload", "list"],
        &["workload", "show"],
        &["migrate"],
        &["bench"],
        &["bench", "relay"],
        &["completions"],
    ] {
        let help = place.ok(&[args, &["--help"]].concat());
        assert!(help.contains("Examples:\n  tidegate "), "{args:?}");
    }
    assert!(place.ok(&["--help"]).contains("Exit codes:\n  0    done"));
    for shell in ["bash", "fish", "zsh"] {
        assert!(place.ok(&["completions", shell]).contains("tidegate"));
    }
}
