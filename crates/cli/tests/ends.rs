//! A run that ends the process of its worker, each time.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use support::{Place, database};

/// Kills the process that started it when it gets run 7; answers all others.
const DEADLY: &str = r#"read s
while read r; do
  i=${r#*:}; i=${i%%,*}
  if [ "$i" = 7 ]; then kill -9 $PPID; exit; fi
  echo "{\"index\":$i,\"result\":$i}"
done"#;

/// More workers than the run may end.
const WORKERS: usize = 30;

fn check(url: &str) {
    let place = Place::new();
    let store = ["--store", url];
    let run = |args: &[&str]| place.tidegate(&[args, &store].concat());
    place.write("deadly.sh", DEADLY);
    let exec = ["--exec", "sh deadly.sh"];
    let submit = |args: &[&str]| assert_eq!(run(&[&["submit"], args].concat()).code, 0);
    submit(&[exec.as_slice(), &["--runs", "50", "--max-attempts", "5"]].concat());
    submit(&["noop", "--runs", "5000", "--seed", "3"]);
    let worker = ["worker", "--until-idle", "--lease", "1s", "--threads", "3"];
    let worker = [&worker, exec.as_slice(), &store].concat();
    let ended = (0..WORKERS).position(|_| place.spawn(&worker).wait().unwrap().success());
    let ended = ended.expect("the batches end although one of their runs ends workers");
    assert!(ended >= 4, "only {ended} workers were ended");

    let shown = run(&["batch", "show", "1", "--json"]).json();
    assert_eq!(
        (&shown["state"], &shown["completed"]),
        (&"completed_with_failures".into(), &49.into())
    );
    let failed = &shown["exceptions"][0];
    assert_eq!(failed["reason"], "its worker ended 5 times", "{shown}");
    assert_eq!((&failed["count"], &failed["indexes"][0]), (&1.into(), &7.into()));
    let text = run(&["batch", "show", "1"]).stdout;
    assert!(text.contains("1 dead: its worker ended 5 times (1#7)"), "{text}");
    let other = run(&["batch", "show", "2", "--json"]).json();
    let calm = place.json(&["run", "noop", "--runs", "5000", "--seed", "3", "--store", "memory:"]);
    assert_eq!((&other["state"], &other["digest"]), (&"completed".into(), &calm["digest"]));
}

#[test]
fn a_run_that_ends_its_workers_is_given_up_on_sqlite() {
    check("sqlite:ends.db");
}

#[tokio::test]
async fn a_run_that_ends_its_workers_is_given_up_on_postgres() {
    let url = database().await;
    tokio::task::spawn_blocking(move || check(&url)).await.unwrap();
}
