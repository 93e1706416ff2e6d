//! `tidegate run`, `submit` and `worker`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use serde_json::Value;
use support::{Place, signal};

#[test]
fn aggregates_are_shown_at_the_end() {
    let place = Place::new();
    let said = place.tidegate(&["run", "noop", "--runs", "1000"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    insta::assert_snapshot!(said.stdout, @r"
                 mean ± 95 %       sd      min      5 %     25 %     50 %     75 %     95 %      max  count
    value  2.114e9 ± 7.627e7  1.231e9  1.104e7  1.966e8  1.078e9  2.135e9  3.163e9  4.102e9  4.291e9  1,000

    value
        ████▆▆▆▆▆▆▇▇▇▇▅▅▆▆██▆▆▇▇██▇▇▅▅▇▇▇▇██▇▇▆▆██▇▇▇▇▇▇▇▇██▅▅▅▅▆▆▆▆▆▆▇▇
        1.104e7                                                  4.291e9

    digest 3323ac951fb81cf8cb8e1d2f6e74bc59
    ");
    assert!(said.stderr.contains("\nbatch 1: 1,000 runs of noop, seed 1, in sqlite\n"));
    assert!(said.stderr.contains("batch 1 completed: 1,000 of 1,000 runs (100.0 %)"));
    assert!(said.stderr.contains(" % of the time"), "what limits is said: {}", said.stderr);
}

#[test]
fn categories_and_distributions_have_bars() {
    let place = Place::new();
    let stdout = place.ok(&["run", "bingo", "--runs", "300", "--store", "memory:"]);
    let from_categories = stdout.split_once("\n\n").unwrap().1;
    insta::assert_snapshot!(from_categories, @r"
    winner
      Night Owls    35.0 %  ██████████████████████████████  105
      Old Hands     28.7 %  ████████████████████████▋       86
      Lunch Club    21.7 %  ██████████████████▋             65
      Early Birds   14.7 %  ████████████▋                   44

    points
      Early Birds        ▁▁  ▁▁  ▁▁▁▁  ▆▆  ▁▁▄▄▂▂    ▅▅    ▄▄      ▂▂        ▁▁
      Lunch Club   ▁▁    ▁▁▁▁  ▁▁▃▃▁▁  ▃▃▃▃    ▆▆▁▁▁▁▃▃▂▂▂▂    ▃▃▂▂  ▁▁
      Night Owls     ▁▁  ▁▁    ▁▁▁▁▁▁  ▂▂▁▁    ▅▅▁▁  ██  ▁▁    ▂▂▂▂  ▂▂▁▁▁▁  ▁▁
      Old Hands    ▁▁    ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▂▂▁▁▂▂▂▂▂▂▃▃▁▁▂▂▁▁▂▂▂▂▂▂▁▁▁▁▁▁▁▁  ▁▁  ▂▂
                   24                                                        82

    rows
      Early Birds                                ▅▅▅▅▅▅▅▅▅▅▆▆▆▆▆▆▆▆▆▆▁▁▁▁▁▁▁▁▁▁
      Lunch Club   ██████████▂▂▂▂▂▂▂▂▂▂▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
      Night Owls   ██████████▂▂▂▂▂▂▂▂▂▂▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
      Old Hands              ▁▁▁▁▁▁▁▁▁▁▂▂▂▂▂▂▂▂▂▂▆▆▆▆▆▆▆▆▆▆▃▃▃▃▃▃▃▃▃▃▁▁▁▁▁▁▁▁▁▁
                   0                                                          5

    tiles
      Early Birds                  ▁▁▁▁▁▁▁▁▂▂▂▂▆▆▆▆▅▅▅▅▅▅▅▅▃▃▃▃▂▂▂▂▁▁▁▁
      Lunch Club   ▁▁▁▁▁▁▁▁▃▃▃▃▄▄▄▄▆▆▆▆▅▅▅▅▂▂▂▂▁▁▁▁▁▁▁▁▁▁▁▁
      Night Owls   ▁▁▁▁▁▁▁▁▁▁▁▁▃▃▃▃▅▅▅▅████▂▂▂▂▁▁▁▁▂▂▂▂▂▂▂▂▁▁▁▁▁▁▁▁▁▁▁▁
      Old Hands            ▁▁▁▁    ▁▁▁▁▁▁▁▁▂▂▂▂▅▅▅▅▅▅▅▅▄▄▄▄▃▃▃▃▂▂▂▂▂▂▂▂
                   8                                                 20

    digest b175d2ed82c96796d63c7c0890e178a3
    ");
}

#[test]
fn json_has_all_fields() {
    let place = Place::new();
    let object = place.json(&["run", "noop", "--runs", "5k", "--seed", "7", "--keep", "none"]);
    let keys: Vec<&str> = object.as_object().unwrap().keys().map(String::as_str).collect();
    insta::assert_snapshot!(keys.join(" "), @"advice aggregates batch completed created_ms dead digest finished_ms keep leased max_attempts phases resumed retrying runs runs_per_second seconds seed snapshot state store timeout_seconds untouched workload");
    for (key, value) in [("batch", 1), ("seed", 7), ("runs", 5_000), ("completed", 5_000)] {
        assert_eq!(object[key], value, "{key}");
    }
    assert_eq!(object["state"], "completed");
    assert_eq!(object["store"], "sqlite");
    assert_eq!(object["aggregates"]["numbers"]["value"]["count"], 5_000);
    assert!(object["runs_per_second"].as_f64().unwrap() > 0.0);
    assert!(object["phases"]["settles"].as_u64().unwrap() > 0);
}

fn digest(place: &Place, more: &[&str]) -> (Value, Value) {
    let args = [&["run", "bingo", "--runs", "200", "--seed", "3"], more].concat();
    let object = place.json(&args);
    assert_eq!(object["resumed"], false);
    (object["digest"].clone(), object["aggregates"].clone())
}

#[test]
fn digest_and_aggregates_do_not_depend_on_the_split() {
    let place = Place::new();
    let expected = digest(&place, &["--store", "memory:"]);
    for more in [
        ["--range-length", "1"].as_slice(),
        &["--range-length", "10000", "--threads", "1"],
        &["--flush-runs", "1", "--threads", "7"],
        &["--flush-after", "1ms", "--keep", "none"],
    ] {
        assert_eq!(digest(&place, more), expected, "{more:?}");
    }
}

#[test]
fn what_was_closed_has_its_final_aggregates() {
    let place = Place::new();
    let object = place.json(&["run", "bingo", "--runs", "50"]);
    let closed = "SELECT digest, aggregates, state FROM batch";
    let store = rusqlite::Connection::open(place.path("tidegate.db")).unwrap();
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let (digest, aggregates, state): (String, String, String) =
        store.query_row(closed, [], read).unwrap();
    assert_eq!((&object["digest"], &object["state"]), (&digest.into(), &state.into()));
    assert_eq!(object["aggregates"], serde_json::from_str::<Value>(&aggregates).unwrap());
}

#[test]
fn a_sample_has_as_many_results_as_it_says() {
    let place = Place::new();
    for (keep, kept) in [("all", 1000), ("sample:10", 10), ("none", 0)] {
        let object = place.json(&["run", "noop", "--runs", "1000", "--keep", keep]);
        let results = place.ok(&["batch", "results", &object["batch"].to_string()]);
        assert_eq!(results.lines().count(), kept, "{keep}");
        assert_eq!(object["aggregates"]["runs"], 1000, "aggregates cover all");
    }
}

const SLOW: [&str; 8] =
    ["sleep", "--runs", "1000", "--snapshot", "5ms.json", "--store", "sqlite:s.db", "--keep=all"];

/// Runs that take five seconds on one thread, stopped by a signal once some are settled.
fn stopped_by(place: &Place, name: &str) -> support::Said {
    place.write("5ms.json", r#"{"ms": 5}"#);
    let quick = ["--threads", "1", "--flush-after", "20ms"];
    let child = place.spawn(&[&["run"], SLOW.as_slice(), &quick].concat());
    place.wait_for_progress("sqlite:s.db");
    signal(&child, name);
    child.wait_with_output().unwrap().into()
}

#[test]
fn ctrl_c_stops_cleanly_and_the_same_command_resumes() {
    let place = Place::new();
    let said = stopped_by(&place, "INT");
    assert_eq!(said.code, 130, "{}", said.stderr);
    assert!(said.stderr.contains("Stopping after the runs in progress."));
    assert!(said.stderr.contains("`tidegate worker --until-idle --store sqlite:s.db`"));

    let said =
        place.tidegate(&[&["run"], SLOW.as_slice(), &["--json", "--threads", "32"]].concat());
    assert!(said.stderr.starts_with("resuming batch 1: "), "{}", said.stderr);
    let object = said.json();
    assert_eq!((&object["completed"], &object["resumed"]), (&1000.into(), &true.into()));
    let settled = object["phases"]["settled_runs"].as_u64().unwrap();
    assert!(settled < 1000, "nothing that was settled before is done again");

    let mut elsewhere = SLOW;
    elsewhere[6] = "memory:";
    let whole = place.json(&[&["run"], elsewhere.as_slice(), &["--threads", "32"]].concat());
    assert_eq!(object["digest"], whole["digest"]);
}

#[test]
fn sigterm_stops_cleanly_and_a_worker_resumes() {
    let place = Place::new();
    assert_eq!(stopped_by(&place, "TERM").code, 143);
    let args = ["worker", "--until-idle", "--threads", "32", "--store", "sqlite:s.db"];
    let object = place.json(&args);
    assert_eq!(object["closed"][0]["state"], "completed");
    assert!(object["phases"]["act_ms"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_batch_can_be_submitted_and_worked_on_apart() {
    let place = Place::new();
    let submitted = place.tidegate(&["submit", "noop", "--runs", "2_000"]);
    assert_eq!((submitted.code, submitted.stdout.as_str()), (0, "1\n"));
    assert!(submitted.stderr.contains("work on it with `tidegate worker`"));
    place.ok(&["submit", "noop", "--runs", "10"]);
    place.ok(&["worker", "--until-idle", "--batch", "1"]);
    let states = place.json(&["batch", "list"]);
    assert_eq!(
        (&states[0]["state"], &states[1]["state"]),
        (&"running".into(), &"completed".into())
    );
    let watched = place.spawn(&["batch", "watch", "2", "--json"]);
    place.ok(&["worker", "--until-idle", "-q"]);
    let said: support::Said = watched.wait_with_output().unwrap().into();
    assert_eq!((said.code, &said.json()["state"]), (0, &"completed".into()));
}

#[test]
fn dead_runs_are_grouped_and_can_be_retried() {
    let place = Place::new();
    place.write("dead.toml", "fail = 0\ndead = 0.1\n");
    let said = place.tidegate(&["run", "flaky", "--runs", "100", "--snapshot", "dead.toml"]);
    assert_eq!(said.code, 3, "{}", said.stderr);
    assert!(said.stderr.contains("batch 1 completed with failures: 100 of 100 runs"));
    assert!(said.stderr.contains(" dead: died, as the snapshot asks (1#"), "{}", said.stderr);
    assert!(said.stderr.contains("`tidegate batch retry 1`"));

    let shown = place.json(&["batch", "show", "1"]);
    let dead = shown["dead"].clone();
    assert_eq!(shown["exceptions"][0]["example"], "died, as the snapshot asks");
    let listed = place.ok(&["batch", "results", "1", "--dead"]);
    assert_eq!(listed.lines().count() as u64, dead.as_u64().unwrap());
    let first: Value = serde_json::from_str(listed.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["attempts"], &first["reason"]),
        (&1.into(), &"died, as the snapshot asks".into())
    );
    let some = place.ok(&["batch", "results", "1", "--dead", "--limit", "2"]);
    assert!(listed.starts_with(&some) && some.lines().count() == 2, "{some}");

    assert_eq!(place.json(&["batch", "retry", "1"])["retried"], dead);
    assert_eq!(place.json(&["batch", "show", "1"])["state"], "running");
    place.ok(&["worker", "--until-idle"]);
    assert_eq!(place.json(&["batch", "show", "1"])["dead"], dead);
}

#[test]
fn panics_in_runs_do_not_flood_stderr() {
    let place = Place::new();
    place.write("panic.toml", "fail = 0\npanic = 1\nattempts = 9\n");
    let args = ["run", "flaky", "--runs", "50", "--snapshot", "panic.toml", "--max-attempts", "1"];
    let said = place.tidegate(&args);
    assert_eq!(said.code, 3);
    assert!(said.stderr.contains("50 dead: panicked: panicked, as the snapshot asks"));
    assert!(!said.stderr.contains("thread '"), "{}", said.stderr);
}

#[test]
fn no_program_outlives_the_process() {
    let place = Place::new();
    let deaf = "sh -c 'echo $$ >> pids; exec sleep 1000'";
    let args = ["run", "--exec", deaf, "--runs", "2", "--threads", "2", "--grace", "1ms"];
    let child = place.spawn(&args);
    let pids = support::wait_until("both programs run", || {
        let pids = std::fs::read_to_string(place.path("pids")).ok()?;
        (pids.lines().count() == 2).then_some(pids)
    });
    signal(&child, "INT");
    let said: support::Said = child.wait_with_output().unwrap().into();
    assert_eq!(said.code, 130, "{}", said.stderr);
    for pid in pids.lines() {
        support::wait_until("it is gone", || {
            let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            (state.is_empty() || state.contains(") Z ")).then_some(())
        });
    }
}

#[test]
fn any_program_is_a_workload() {
    let place = Place::new();
    let answer = r#"read s; while read r; do i=${r#*:}; i=${i%%,*}; echo "{\"index\":$i,\"result\":$i,\"numbers\":{\"i\":$i}}"; done"#;
    place.write("count.sh", answer);
    let args = ["run", "--exec", "sh count.sh", "--runs", "20", "--threads", "2"];
    let object = place.json(&args);
    assert_eq!(object["workload"], "exec:sh count.sh");
    assert_eq!(object["aggregates"]["numbers"]["i"]["mean"], 9.5);

    let refused = place.tidegate(&["batch", "replay", "1#7"]);
    assert!(refused.stderr.contains("allow it with --exec 'sh count.sh'"), "{}", refused.stderr);
    let replayed = place.json(&["batch", "replay", "1#7", "--exec", "sh count.sh"]);
    assert_eq!((&replayed["result"], &replayed["identical"]), (&7.into(), &true.into()));
}

#[test]
fn flags_go_before_the_environment_and_that_before_the_file() {
    let place = Place::new();
    place.write("tidegate.toml", "store = 'sqlite:file.db'\nkeep = 'sample:3'\nthreads = 1\n");
    let run = ["run", "noop", "--runs", "10", "--json"];
    let from_file: support::Said = place.command(&run).output().unwrap().into();
    assert_eq!(from_file.json()["keep"], "sample:3");
    let with = |args: &[&str]| {
        let mut command = place.command(&[run.as_slice(), args].concat());
        command.env("TIDEGATE_KEEP", "none").env("TIDEGATE_STORE", "memory:");
        support::Said::from(command.output().unwrap()).json()
    };
    let from_environment = with(&[]);
    assert_eq!(from_environment["keep"], "none");
    assert_eq!(from_environment["store"], "memory");
    assert_eq!(with(&["--keep", "all"])["keep"], "all");
}
