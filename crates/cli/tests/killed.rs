//! Workers that are killed, again and again, change nothing in what a batch says.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use serde_json::Value;
use support::{Place, database, wait_until};

const BATCH: [&str; 7] = ["flaky", "--runs", "6000", "--seed", "9", "--snapshot", "flaky.toml"];
/// Short ranges, so that a worker dies with many leases behind it and more to come.
const WORKER: [&str; 10] = [
    "worker",
    "--until-idle",
    "--lease",
    "1s",
    "--range-length",
    "25",
    "--flush-runs",
    "40",
    "--threads",
    "2",
];

/// All workers are killed each time they have settled something, then one may finish.
fn check(url: &str, workers: usize) {
    let place = Place::new();
    let store = ["--store", url];
    place.write("flaky.toml", "fail = 0.05\ndead = 0.01\n");
    place.ok(&[["submit"].as_slice(), &BATCH, &store].concat());
    let show = [["batch", "show", "1", "--json"].as_slice(), &store].concat();
    let completed = || {
        let shown: Value = serde_json::from_str(&place.tidegate(&show).stdout).ok()?;
        shown["completed"].as_u64()
    };
    for _ in 0..4 {
        let before = completed().unwrap();
        let spawn = |_| place.spawn(&[WORKER.as_slice(), &store].concat());
        let mut spawned: Vec<_> = (0..workers).map(spawn).collect();
        wait_until("more runs are settled", || completed().filter(|now| *now > before));
        for worker in &mut spawned {
            worker.kill().unwrap();
            worker.wait().unwrap();
        }
    }
    place.ok(&[WORKER.as_slice(), &store].concat());

    let shown = place.tidegate(&show).json();
    let calm = [["run"].as_slice(), &BATCH, &["--json", "--store", "memory:"]].concat();
    let calm = place.tidegate(&calm).json();
    for field in ["digest", "completed", "dead", "aggregates"] {
        assert_eq!(shown[field], calm[field], "{field}");
    }
}

#[test]
fn a_batch_on_sqlite_ends_with_the_same_bits() {
    check("sqlite:killed.db", 2);
}

#[tokio::test]
async fn a_batch_on_postgres_ends_with_the_same_bits() {
    let url = database().await;
    tokio::task::spawn_blocking(move || check(&url, 5)).await.unwrap();
}
