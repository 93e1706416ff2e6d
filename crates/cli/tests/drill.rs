//! Short drills with real processes and servers. What takes long is not judged here: the machine may be busy.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use serde_json::Value;
use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::{SystemTime, UNIX_EPOCH},
};
use support::{Place, Said, signal, wait_until};

/// Long enough that nobody who is not disturbed loses a lease on a busy machine.
const LEASE: &str = "5s";
/// A healthy topic that stands still for so long is stuck, and not slow.
const STUCK_MS: u64 = 60_000;
const SEEDS: [u64; 2] = [1, 7];

fn seeds() -> Vec<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    SEEDS.into_iter().chain([u64::from(now.subsec_nanos()) % 1_000_000]).collect()
}

/// A drill in a directory of its own.
fn drill(kind: &str, seed: u64, more: &[&str]) -> Said {
    let seed = seed.to_string();
    let args = ["drill", kind, "--seed", &seed, "--lease", LEASE];
    let place = Place::new();
    let mut command = place.command(&[args.as_slice(), more].concat());
    if let Some(programs) = std::env::var_os("TIDEGATE_TEST_POSTGRES_BIN")
        && more.contains(&"--postgres")
    {
        command.arg("--postgres-bin").arg(programs);
    }
    command.output().unwrap().into()
}

const ON_POSTGRES: [&str; 10] = [
    "--postgres",
    "--seconds",
    "14",
    "--kill-every",
    "1500ms",
    "--crash-every",
    "4s",
    "--failovers",
    "1",
    "--json",
];
const ON_SQLITE: [&str; 5] = ["--seconds", "10", "--kill-every", "1500ms", "--json"];

/// These are zero, whatever the machine is like.
fn check(kind: &str, seed: u64, more: &[&str], none: &[&str], stall: &str) -> Value {
    let said = drill(kind, seed, more);
    let report = said.json();
    for name in none {
        assert_eq!(report.pointer(name), Some(&0.into()), "seed {seed}, {name}: {report:#}");
    }
    assert_eq!(report["ended_by_themselves"], Value::Array(Vec::new()), "seed {seed}");
    let stall = report.pointer(stall).and_then(Value::as_u64).unwrap();
    assert!(stall < STUCK_MS, "seed {seed}: {report:#}");
    assert_eq!(said.code == 0, report["broken"] == Value::Array(Vec::new()));
    report
}

fn check_relay(seed: u64, more: &[&str]) -> Value {
    let none = ["/lost", "/unexpected", "/order_violations", "/outstanding", "/dead"];
    let none = [none.as_slice(), &["/duplicates/unexplained"]].concat();
    let report = check("relay", seed, more, &none, "/stall/topic_ms");
    let messages = &report["messages"];
    assert!(messages["accepted"].as_u64() > Some(1_000), "seed {seed}: {report:#}");
    assert!(messages["refused"].as_u64() > Some(0), "seed {seed}: {report:#}");
    assert!(messages["rolled_back"].as_u64() > Some(0), "seed {seed}: {report:#}");
    assert!(report["faults"]["kills"].as_u64() > Some(0), "seed {seed}: {report:#}");
    report
}

fn check_batch(seed: u64, more: &[&str]) -> Value {
    let none = ["/lost", "/twice", "/unexpected", "/dead", "/other_digests", "/other_aggregates"];
    let none = [none.as_slice(), &["/running"]].concat();
    let report = check("batch", seed, more, &none, "/stall_ms");
    assert!(report["batches"].as_u64() > Some(0), "seed {seed}: {report:#}");
    report
}

#[test]
fn relays_on_sqlite_lose_nothing_when_they_are_killed() {
    check_relay(SEEDS[0], &ON_SQLITE);
}

#[test]
fn workers_on_sqlite_lose_nothing_when_they_are_killed() {
    check_batch(SEEDS[0], &ON_SQLITE);
}

#[test]
fn relays_lose_nothing_when_the_server_crashes_and_fails_over() {
    for seed in seeds() {
        let report = check_relay(seed, &ON_POSTGRES);
        assert_eq!(report["faults"]["failovers"], 1);
        assert!(report["faults"]["crashes"].as_u64() > Some(0), "{report:#}");
    }
}

/// A crash takes settlements back that set failing messages aside.
#[test]
fn relays_lose_nothing_that_failed_before_a_crash() {
    let how = ["--postgres", "--seconds", "14", "--crash-every", "2s", "--fail-share", "0.1"];
    for seed in seeds() {
        let report = check_relay(seed, &[how.as_slice(), &["--json"]].concat());
        assert!(report["faults"]["crashes"].as_u64() > Some(2), "{report:#}");
    }
}

#[test]
fn workers_count_nothing_twice_when_the_server_crashes_and_fails_over() {
    for seed in seeds() {
        let report = check_batch(seed, &ON_POSTGRES);
        assert_eq!(report["faults"]["failovers"], 1);
    }
}

#[test]
fn a_drill_without_faults_repeats_nothing_and_says_so() {
    let said = drill("relay", 3, &["--seconds", "4", "--kill-every", "none", "--fail-share", "0"]);
    for line in [
        "faults        0 kills, 0 stops, 0 restarts; 0 crashes of the server, 0 failovers\n",
        "lost          0\n",
        "unexpected    0\n",
        "order         0 violations; 0 keys end with an older message that came again\n",
        "duplicates    0: 0 after faults of relays, 0 after faults of the server, 0 unexplained\n",
    ] {
        assert!(said.stdout.contains(line), "{line}{}", said.stdout);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let place = Place::new();
    place.write("kept.db", "");
    let refused = |args: &[&str], code: i32, text: &str| {
        let said = place.tidegate(&[&["drill", "relay"], args].concat());
        assert_eq!(said.code, code, "{}", said.stderr);
        assert!(said.stderr.contains(text), "{}", said.stderr);
    };
    refused(&["--crash-every", "5s"], 2, "--postgres");
    refused(&["--failovers", "1"], 2, "--postgres");
    refused(&["--lease", "10ms"], 2, "lost before it can be renewed");
    refused(&["--fail-share", "2"], 2, "not a share");
    refused(&["--store", "sqlite:kept.db"], 1, "`kept.db` exists");
    refused(&["--store", "memory:"], 1, "a store that processes share");
    refused(&["--keep-data", "."], 1, "is not empty");
    refused(&["--postgres", "--postgres-bin", "."], 1, "there is no initdb in .");
}

/// The drill's processes carry its directory in their arguments.
fn processes_of(directory: &Path) -> usize {
    let directory = directory.to_str().unwrap();
    let command = |entry: fs::DirEntry| fs::read(entry.path().join("cmdline")).unwrap_or_default();
    let commands = fs::read_dir("/proc").unwrap().map(|entry| command(entry.unwrap()));
    commands.filter(|it| String::from_utf8_lossy(it).contains(directory)).count()
}

/// A drill at work, and its directory.
fn at_work(place: &Place) -> (Child, PathBuf) {
    let mut command = place.command(&["drill", "relay", "--postgres", "--seconds", "300"]);
    if let Some(programs) = std::env::var_os("TIDEGATE_TEST_POSTGRES_BIN") {
        command.arg("--postgres-bin").arg(programs);
    }
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let directory = line.trim().rsplit(' ').next().unwrap();
    let directory = PathBuf::from(directory);
    // The server, the guard, and the relays.
    wait_until("relays are at work", || (processes_of(&directory) >= 6).then_some(()));
    (child, directory)
}

#[test]
fn nothing_is_left_of_a_drill_that_is_ended() {
    for (name, code) in [("INT", Some(130)), ("KILL", None)] {
        let place = Place::new();
        let (mut child, directory) = at_work(&place);
        signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), code, "{name}");
        wait_until("its directory and its processes are gone", || {
            (!directory.exists() && processes_of(&directory) == 0).then_some(())
        });
    }
}
