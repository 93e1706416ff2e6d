//! Workers that are killed, again and again, change nothing in what a batch says.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use serde_json::Value;
use support::{Place, wait_until};

const STORE: [&str; 2] = ["--store", "sqlite:killed.db"];
const BATCH: [&str; 7] = ["flaky", "--runs", "6000", "--seed", "9", "--snapshot", "flaky.toml"];
/// Short ranges, so that a worker dies with many leases behind it and more to come.
const WORKER: [&str; 10] = [
    "worker",
    "--until-idle",
    "--lease",
    "300ms",
    "--range-length",
    "25",
    "--flush-runs",
    "40",
    "--threads",
    "2",
];

#[test]
fn a_batch_ends_with_the_same_bits_however_often_its_workers_are_killed() {
    let place = Place::new();
    place.write("flaky.toml", "fail = 0.05\ndead = 0.01\n");
    place.ok(&[["submit"].as_slice(), &BATCH, &STORE].concat());
    let completed = || {
        let shown = place.tidegate(&[["batch", "show", "1", "--json"].as_slice(), &STORE].concat());
        serde_json::from_str::<Value>(&shown.stdout).ok()?["completed"].as_u64()
    };

    for _ in 0..4 {
        let before = completed().unwrap();
        let mut workers: Vec<_> =
            (0..2).map(|_| place.spawn(&[WORKER.as_slice(), &STORE].concat())).collect();
        wait_until("more runs are settled", || completed().filter(|now| *now > before));
        for worker in &mut workers {
            worker.kill().unwrap();
            worker.wait().unwrap();
        }
    }
    place.ok(&[WORKER.as_slice(), &STORE].concat());

    let shown = place.json(&[["batch", "show", "1"].as_slice(), &STORE].concat());
    let calm = [["run"].as_slice(), &BATCH, &["--json", "--store", "memory:"]].concat();
    let calm = place.tidegate(&calm).json();
    for field in ["digest", "completed", "dead", "aggregates"] {
        assert_eq!(shown[field], calm[field], "{field}");
    }
}
