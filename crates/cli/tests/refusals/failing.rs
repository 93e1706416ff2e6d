//! Work that cannot succeed says so at once.

use crate::support::{Place, Said, signal};

#[test]
fn a_program_that_cannot_start_is_named_and_ends_the_run() {
    let place = Place::new();
    let args = ["run", "--exec", "sh nothere.sh", "--runs", "100000", "--threads", "2"];
    let said = place.tidegate(&args);
    assert_eq!(said.code, 1, "{}", said.stderr);
    let first = said.stderr.lines().find(|line| line.contains("failed: ")).unwrap();
    assert!(first.starts_with("run ") && first.contains("nothere.sh"), "{}", said.stderr);
    let last = said.stderr.lines().find(|line| line.starts_with("error: ")).unwrap();
    assert!(last.contains("all failed alike") && last.contains("nothere.sh"), "{last}");
    assert!(last.contains("`tidegate worker --batch 1 --exec 'sh nothere.sh'`"), "{last}");
    assert!(!said.stderr.contains("more workers"), "{}", said.stderr);
    assert_eq!(place.json(&["batch", "show", "1"])["state"], "running", "it can be resumed");
}

#[test]
fn a_program_that_fails_with_other_words_each_time_ends_the_run_too() {
    let place = Place::new();
    let program = "sh -c 'while read line; do tr -dc a-z </dev/urandom | head -c 30; echo; done'";
    let store = ["--store", "sqlite:other.db"];
    let args = ["run", "--exec", program, "--runs", "100000", "--threads", "2"];
    let said = place.tidegate(&[&args[..], &store[..]].concat());
    assert_eq!(said.code, 1, "{}", said.stderr);
    let last = said.stderr.lines().find(|line| line.starts_with("error: ")).unwrap();
    assert!(last.contains("none of the first 1") && last.contains("the latest failed"), "{last}");
    assert!(last.contains("--exec") && last.contains(" --store sqlite:other.db`"), "{last}");
}

#[test]
fn a_workload_that_always_fails_ends_the_run_too() {
    let place = Place::new();
    place.write("panic.toml", "fail = 0\npanic = 1\nattempts = 9\n");
    let run = ["run", "flaky", "--runs", "10000", "--snapshot", "panic.toml", "--json"];
    let said = place.tidegate(&run);
    assert_eq!(said.code, 1, "{}", said.stderr);
    assert!(said.stderr.contains("panicked, as the snapshot asks"), "{}", said.stderr);
    assert_eq!(said.json()["advice"], serde_json::Value::Null);
}

#[test]
fn one_success_keeps_a_run_going() {
    let place = Place::new();
    place.write("flaky.toml", "fail = 0\ndead = 0.9\n");
    let run = ["run", "flaky", "--runs", "2000", "--snapshot", "flaky.toml", "--max-attempts", "1"];
    let said = place.tidegate(&run);
    assert_eq!(said.code, 3, "{}", said.stderr);
}

#[test]
fn a_lease_that_cannot_be_renewed_is_refused_everywhere() {
    let place = Place::new();
    place.ok(&["migrate"]);
    let commands = [
        ["run", "noop", "--runs", "1"].as_slice(),
        &["worker", "--until-idle"],
        &["relay", "--to", "stdout", "--drain"],
    ];
    for args in commands {
        for lease in ["1ms", "999ms", "0.5s"] {
            let refused = |said: Said| {
                assert!(said.code == 1 || said.code == 2, "{args:?}: {}", said.stderr);
                assert!(said.stderr.contains("lost before it can be renewed"), "{}", said.stderr);
            };
            refused(place.tidegate(&[args, &["--lease", lease]].concat()));
            refused(place.command(args).env("TIDEGATE_LEASE", lease).output().unwrap().into());
            place.write("lease.toml", format!("lease = '{lease}'\n"));
            refused(place.tidegate(&[args, &["--config", "lease.toml"]].concat()));
        }
    }
    for args in commands {
        for lease in ["25h", "106751991167301d", "99999999999d"] {
            let refused = |said: Said| {
                assert!(said.code == 1 || said.code == 2, "{args:?}: {}", said.stderr);
                let tells =
                    said.stderr.contains("at most one day") || said.stderr.contains("too long");
                assert!(tells, "{}", said.stderr);
            };
            refused(place.tidegate(&[args, &["--lease", lease]].concat()));
            refused(place.command(args).env("TIDEGATE_LEASE", lease).output().unwrap().into());
            place.write("lease.toml", format!("lease = '{lease}'\n"));
            refused(place.tidegate(&[args, &["--config", "lease.toml"]].concat()));
        }
    }
    place.ok(&["run", "noop", "--runs", "1", "--lease", "1s"]);
    place.ok(&["run", "noop", "--runs", "2", "--lease", "1d"]);
}

#[test]
fn times_that_cannot_be_computed_with_are_refused_and_long_ones_work() {
    let place = Place::new();
    place.ok(&["migrate"]);
    for args in [
        ["run", "noop", "--runs", "1", "--timeout"].as_slice(),
        &["run", "noop", "--runs", "1", "--grace"],
        &["run", "noop", "--runs", "1", "--flush-after"],
        &["relay", "--to", "stdout", "--drain", "--give-up-after"],
        &["relay", "--to", "stdout", "--drain", "--grace"],
        &["outbox", "purge", "--older-than"],
        &["outbox", "archive", "sent", "--older-than"],
        &["publish", "a", "{}", "--delay"],
    ] {
        let said = place.tidegate(&[args, &["106751991167301d"]].concat());
        assert!(said.code == 2 && said.stderr.contains("too long"), "{args:?}: {}", said.stderr);
        let said = place.tidegate(&[args, &["36500d"]].concat());
        assert_eq!(said.code, 0, "{args:?}: {}", said.stderr);
    }
}

#[test]
fn what_a_stopped_run_gave_back_is_not_leased_by_another() {
    let place = Place::new();
    let run = ["run", "sleep", "--runs", "1000000", "--threads", "2"];
    let child = place.spawn(&run);
    place.wait_for_progress("sqlite:tidegate.db");
    signal(&child, "INT");
    let said: Said = child.wait_with_output().unwrap().into();
    assert_eq!(said.code, 130, "{}", said.stderr);
    let shown = place.json(&["batch", "show", "1"]);
    assert_eq!(shown["leased"], 0, "{shown}");
    let sum: u64 = ["completed", "dead", "retrying", "leased", "untouched"]
        .iter()
        .map(|name| shown[*name].as_u64().unwrap())
        .sum();
    assert_eq!(sum, 1_000_000);
    let child = place.spawn(&run);
    crate::support::wait_until("it goes on", || {
        let now = place.json(&["batch", "show", "1"]);
        (now["completed"].as_u64() > shown["completed"].as_u64()).then_some(())
    });
    signal(&child, "INT");
    let said: Said = child.wait_with_output().unwrap().into();
    assert!(said.stderr.contains("resuming batch 1"), "{}", said.stderr);
    assert!(!said.stderr.contains("leased by another"), "{}", said.stderr);
}
