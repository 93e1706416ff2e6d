//! The command line on PostgreSQL.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use support::{Place, connect, database, wait_until};

#[tokio::test]
async fn the_digest_is_that_of_the_other_stores() {
    let (place, url) = (Place::new(), database().await);
    let run = |store: &str, length: &str| {
        let how = ["--seed", "5", "--store", store, "--range-length", length];
        place.json(&[["run", "bingo", "--runs", "300"].as_slice(), &how].concat())
    };
    let memory = run("memory:", "10");
    for length in ["1", "70", "10000"] {
        let postgres = run(&url, length);
        assert_eq!(postgres["digest"], memory["digest"]);
        assert_eq!(postgres["aggregates"], memory["aggregates"]);
        assert_eq!(postgres["store"], "postgres");
    }
    let closed = "select digest, aggregates::text from tidegate.batch where id = 1";
    let row = connect(&url).await.query_one(closed, &[]).await.unwrap();
    assert_eq!(memory["digest"], row.get::<_, &str>(0));
    let aggregates: serde_json::Value = serde_json::from_str(row.get(1)).unwrap();
    assert_eq!(memory["aggregates"], aggregates, "what was closed has its final aggregates");
}

#[tokio::test]
async fn workers_share_a_batch_and_one_is_killed() {
    let (place, url) = (Place::new(), database().await);
    place.write("5ms.json", r#"{"ms": 5}"#);
    let batch = ["sleep", "--runs", "2000", "--snapshot", "5ms.json", "--store", &url];
    assert_eq!(place.ok(&[&["submit"], batch.as_slice()].concat()), "1\n");

    let worker = ["worker", "--until-idle", "--store", &url, "--lease", "1s", "--threads", "8"];
    let mut killed = place.spawn(&[worker.as_slice(), &["--flush-after", "20ms"]].concat());
    place.wait_for_progress(&url);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let others: Vec<_> = (0..2).map(|_| place.spawn(&worker)).collect();
    for other in others {
        assert!(other.wait_with_output().unwrap().status.success());
    }
    let shown = place.json(&["batch", "show", "1", "--store", &url]);
    assert_eq!((&shown["state"], &shown["completed"]), (&"completed".into(), &2000.into()));
    let memory = [&["run"], &batch[..5], &["--store", "memory:", "--threads", "64"]].concat();
    assert_eq!(shown["digest"], place.json(&memory)["digest"]);
}

#[tokio::test]
async fn replay_and_results_read_what_is_stored() {
    let (place, url) = (Place::new(), database().await);
    place.write("flaky.toml", "fail = 0.3\n");
    let store = ["--store", &url];
    let run = ["run", "flaky", "--runs", "100", "--snapshot", "flaky.toml", "--flush-runs", "7"];
    place.ok(&[run.as_slice(), &store].concat());
    let results = place.ok(&[["batch", "results", "1"].as_slice(), &store].concat());
    let first = |line: &str| line.split(',').next().unwrap().to_owned();
    let indexes: Vec<_> = results.lines().map(first).collect();
    assert_eq!(indexes, (0..100).map(|i| format!("{{\"index\":{i}")).collect::<Vec<_>>());
    let replayed = place.json(&[["batch", "replay", "1#42"].as_slice(), &store].concat());
    assert_eq!(replayed["identical"], true);
}

#[tokio::test]
async fn a_batch_is_cancelled_while_a_worker_is_on_it() {
    let (place, url) = (Place::new(), database().await);
    let run = ["run", "sleep", "--runs", "1M", "--store", &url, "--flush-after", "20ms"];
    let child = place.spawn(&run);
    place.wait_for_progress(&url);
    place.ok(&["batch", "cancel", "1", "--store", &url]);
    let said: support::Said = child.wait_with_output().unwrap().into();
    assert_eq!(said.code, 1, "{}", said.stderr);
    assert!(said.stderr.contains("batch 1 cancelled: "), "{}", said.stderr);
}

#[tokio::test]
async fn an_older_schema_is_refused_and_migrated() {
    let (place, url) = (Place::new(), database().await);
    place.ok(&["migrate", "--store", &url]);
    let client = connect(&url).await;
    let older = "delete from tidegate.migration where version > 1";
    client.batch_execute(older).await.unwrap();
    for args in [["batch", "list"].as_slice(), &["run", "noop", "--runs", "1"]] {
        let said = place.tidegate(&[args, &["--store", &url]].concat());
        assert_eq!(said.code, 1);
        assert!(
            said.stderr.contains("version 1") && said.stderr.contains("run `tidegate migrate`")
        );
    }
    place.ok(&["migrate", "--store", &url]);
    place.ok(&["run", "noop", "--runs", "1", "--store", &url]);
}

#[tokio::test]
async fn a_read_only_server_is_refused() {
    let (place, url) = (Place::new(), database().await);
    place.ok(&["migrate", "--store", &url]);
    let (_, name) = url.rsplit_once('/').unwrap();
    let client = connect(&url).await;
    let read_only = format!("alter database {name} set default_transaction_read_only = on");
    client.batch_execute(&read_only).await.unwrap();
    let said = wait_until("the setting holds", || {
        let said = place.tidegate(&["submit", "noop", "--runs", "1", "--store", &url]);
        (said.code != 0).then_some(said)
    });
    assert!(said.stderr.contains("read-only"), "{}", said.stderr);
    assert_eq!(said.stderr.lines().count(), 1, "{}", said.stderr);
}
