//! Loads that are stopped, killed, or begun twice.

use crate::{
    support::{Said, signal, wait_until},
    world::{World, lines},
};
use serde_json::Value;
use std::time::Duration;
use tidegate_drill::{Concurrency, Spec};

#[test]
fn a_load_that_is_killed_goes_on() {
    // A service takes longer than it takes to settle what it has acknowledged.
    let world = World::new(Spec { delay: Duration::from_millis(100), ..Spec::default() });
    world.place.write("in.ndjson", lines(5_000));
    let url = world.url();
    let args = world.args(&url, &["--group", "10", "--max", "8"]);
    for _ in 0..3 {
        let before = world.stored().0;
        let mut child = world.place.spawn(&args);
        wait_until("more is stored", || (world.stored().0 > before + 300).then_some(()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let said = world.place.tidegate(&args);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stderr.contains("going on with load 1"), "{}", said.stderr);
    let (records, duplicates) = world.stored();
    assert_eq!(records, 5_000);
    assert!(duplicates <= 3 * 8 * 10, "{duplicates}");
}

#[test]
fn a_stop_repeats_nothing() {
    let world = World::new(Spec { delay: Duration::from_millis(20), ..Spec::default() });
    world.place.write("in.ndjson", lines(20_000));
    let url = world.url();
    let args = world.args(&url, &["--group", "10"]);
    let child = world.place.spawn(&args);
    wait_until("some are stored", || (world.stored().0 > 100).then_some(()));
    signal(&child, "TERM");
    let said: Said = child.wait_with_output().unwrap().into();
    assert_eq!(said.code, 143, "{}", said.stderr);
    assert!(said.stderr.contains("the same command goes on from here"), "{}", said.stderr);
    assert_eq!(world.place.tidegate(&args).code, 0);
    assert_eq!(world.stored(), (20_000, 0));
}

#[test]
fn a_retry_after_outlives_the_process() {
    let world = World::new(Spec {
        delay: Duration::from_millis(20),
        concurrency: Some(Concurrency { limit: 2 }),
        retry_after: Some(Duration::from_secs(3)),
        ..Spec::default()
    });
    world.place.write("in.ndjson", lines(100));
    let url = world.url();
    let args = world.args(&url, &[]);
    let mut child = world.place.spawn(&args);
    wait_until("the Retry-After is written down", || {
        let said = world.place.tidegate(&["pace", "--json"]);
        let paces: Value = serde_json::from_str(&said.stdout).ok()?;
        let remembered = &paces[0]["pace"]["remembered"][0]["retry_after"];
        remembered.as_f64().filter(|seconds| *seconds > 0.0)
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let said = world.place.tidegate(&args);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert_eq!(world.service.counters().inside_retry_after, 0);
}

#[test]
fn a_load_that_is_begun_twice_at_once_is_one() {
    let world = World::new(Spec { delay: Duration::from_millis(20), ..Spec::default() });
    world.place.write("in.ndjson", lines(3_000));
    let url = world.url();
    let args = world.args(&url, &["--group", "10"]);
    let children = [(); 3].map(|()| world.place.spawn(&args));
    for child in children {
        let said: Said = child.wait_with_output().unwrap().into();
        assert_eq!(said.code, 0, "{}", said.stderr);
        assert!(said.stderr.contains("load 1"), "{}", said.stderr);
    }
    assert_eq!(world.stored(), (3_000, 0));
    assert_eq!(world.place.json(&["batch", "list"]).as_array().unwrap().len(), 1);
}

/// Two processes with a file each take no more than the one service gives to both.
#[test]
fn two_loads_share_one_service() {
    let world = World::new(Spec {
        delay: Duration::from_millis(20),
        concurrency: Some(Concurrency { limit: 8 }),
        retry_after: Some(Duration::from_secs(1)),
        ..Spec::default()
    });
    world.place.write("in.ndjson", lines(3_000));
    world.place.write("more.ndjson", lines(3_000).replace("somebody", "another"));
    let url = world.url();
    let one = world.place.spawn(&world.args(&url, &["--group", "5"]));
    let more = ["load", "more.ndjson", "--to", &url, "--allow", "127.0.0.1", "--group", "5"];
    let two = world.place.spawn(&more);
    for child in [one, two] {
        let said: Said = child.wait_with_output().unwrap().into();
        assert_eq!(said.code, 0, "{}", said.stderr);
    }
    // Both files have the same ids: each record came twice, and none a third time.
    let counters = world.service.counters();
    assert_eq!((counters.records, counters.duplicates), (3_000, 3_000));
    assert!(counters.throttled.total * 10 <= counters.requests, "{counters:?}");
}
