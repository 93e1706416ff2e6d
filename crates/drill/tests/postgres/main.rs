//! Private PostgreSQL servers really crash, lag, take over and go away.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    env,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Command, Stdio},
};
use tidegate_drill::{
    Guard,
    postgres::{Cluster, Crash, Options},
};

/// Nothing is flushed unless a commit asks for it.
const LAZY: &str = "synchronous_commit = off\nwal_writer_delay = 10s\nautovacuum = off";

fn cluster() -> Cluster {
    let programs = env::var_os("TIDEGATE_TEST_POSTGRES_BIN").map(PathBuf::from);
    let options = Options { programs: programs.as_deref(), settings: LAZY, directory: None };
    let cluster = Cluster::start(options).unwrap();
    cluster.query("create table numbers (n int); checkpoint").unwrap();
    cluster
}

fn insert(cluster: &Cluster, number: u32, commit: &str) {
    let sql = format!(
        "begin; set local synchronous_commit = {commit}; insert into numbers values ({number}); commit"
    );
    cluster.query(&sql).unwrap();
}

fn numbers(cluster: &Cluster) -> String {
    cluster.query("select string_agg(n::text, ' ' order by n) from numbers").unwrap()
}

#[test]
fn a_crash_takes_back_what_was_not_flushed_and_nothing_else() {
    let mut cluster = cluster();
    let url = cluster.url();
    let mut expected = Vec::new();
    for (n, how) in [Crash::Immediate, Crash::Kill, Crash::Immediate].into_iter().enumerate() {
        let kept = n as u32 * 10 + 1;
        insert(&cluster, kept, "on");
        expected.push(kept.to_string());
        insert(&cluster, kept + 1, "off");
        cluster.crash(how).unwrap();
        cluster.restart().unwrap();
        assert_eq!(numbers(&cluster), expected.join(" "), "{how:?}");
    }
    assert_eq!(cluster.url(), url);
}

#[test]
fn a_standby_that_was_held_takes_over_without_what_came_later() {
    let mut cluster = cluster();
    let url = cluster.url();
    for round in 0..2 {
        insert(&cluster, round * 10 + 1, "on");
        cluster.add_standby().unwrap();
        cluster.hold_standby().unwrap();
        insert(&cluster, round * 10 + 2, "on");
        let how = [Crash::Kill, Crash::Immediate][round as usize];
        cluster.fail_over(how).unwrap();
        assert!(!cluster.has_standby());
        insert(&cluster, round * 10 + 3, "on");
    }
    assert_eq!(numbers(&cluster), "1 3 11 13");
    assert_eq!(cluster.url(), url);
    let timeline = "select timeline_id from pg_control_checkpoint()";
    cluster.query("checkpoint").unwrap();
    assert_eq!(cluster.query(timeline).unwrap(), "3");
}

#[test]
fn a_standby_that_is_not_held_has_what_was_flushed() {
    let mut cluster = cluster();
    cluster.add_standby().unwrap();
    insert(&cluster, 1, "remote_apply");
    cluster.fail_over(Crash::Immediate).unwrap();
    let found = numbers(&cluster);
    assert!(["", "1"].contains(&found.as_str()), "{found}");
    assert!(cluster.fail_over(Crash::Kill).is_err(), "there is no other standby");
    insert(&cluster, 2, "on");
}

#[test]
fn a_frozen_server_goes_on_when_it_is_thawed() {
    let mut cluster = cluster();
    cluster.freeze().unwrap();
    cluster.thaw();
    insert(&cluster, 1, "on");
    cluster.kill_backends().unwrap();
    assert_eq!(numbers(&cluster), "1");
}

#[test]
fn nothing_is_left_of_a_cluster() {
    let cluster = cluster();
    let (directory, port) = (cluster.guard().directory().to_owned(), cluster.port());
    assert!(directory.exists());
    drop(cluster);
    assert!(!directory.exists());
    assert!(std::net::TcpListener::bind(("127.0.0.1", port)).is_ok(), "nobody listens");
}

#[test]
fn a_guard_ends_processes_that_are_stopped_or_refuse_to_end() {
    let guard = Guard::temporary().unwrap();
    let directory = guard.directory().to_owned();
    let start = |script: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", script]).process_group(guard.group()).stdout(Stdio::piped());
        command.spawn().unwrap()
    };
    let mut processes = [
        start("kill -STOP $$"),
        start("trap '' HUP QUIT TERM; while true; do sleep 0.05; done"),
        start("exec sleep 1000"),
    ];
    drop(guard);
    for process in &mut processes {
        assert!(!process.wait().unwrap().success());
    }
    assert!(!directory.exists());
}

#[test]
fn data_that_is_to_be_kept_is_kept() {
    let place = tempfile::tempdir().unwrap();
    // The servers' user must be able to enter it.
    let directory = place.path().join("kept");
    let options = Options { directory: Some(&directory), ..Options::default() };
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.path(), open).unwrap();
    let programs = env::var_os("TIDEGATE_TEST_POSTGRES_BIN").map(PathBuf::from);
    let cluster = Cluster::start(Options { programs: programs.as_deref(), ..options }).unwrap();
    drop(cluster);
    assert!(directory.join("server-1/data/PG_VERSION").exists());
}
