//! The schema and what people see of it.

use crate::{claim, place, settlement, store, submit};
use rusqlite::Connection;
use std::{path::Path, thread};
use tidegate_core::{Migrate, Page, Range, Source, migrate::Schema, settle::Settled};
use tidegate_sqlite::{Open, Sqlite};
use tokio::runtime::Builder;

const ALL: [&str; 12] = [
    "0001_batches",
    "0002_pace",
    "0003_loads",
    "0004_outbox",
    "0005_relay",
    "0006_settled",
    "0007_leases",
    "0008_numbers",
    "0009_losses",
    "0010_steer",
    "0011_sinks",
    "0012_names",
];

fn pragma<T: rusqlite::types::FromSql>(path: &Path, name: &str) -> T {
    let connection = Connection::open(path).unwrap();
    connection.pragma_query_value(None, name, |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn migrating_twice_applies_nothing_the_second_time() {
    let (_directory, path) = place();
    let store = Sqlite::open(&path, Open::Create).unwrap();
    assert_eq!(store.schema().await.unwrap(), Schema::Missing);
    assert_eq!(store.migrate().await.unwrap(), ALL);
    assert_eq!(store.schema().await.unwrap(), Schema::Current);
    assert!(store.migrate().await.unwrap().is_empty());
    assert_eq!(pragma::<String>(&path, "journal_mode"), "wal");
    assert_eq!(pragma::<i64>(&path, "application_id"), i64::from(u32::from_be_bytes(*b"TIDE")));
}

#[test]
fn many_may_migrate_at_once() {
    let (_directory, path) = place();
    let migrate = || {
        let store = Sqlite::open(&path, Open::Create).unwrap();
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(store.migrate()).unwrap().len()
    };
    let applied: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(migrate)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(applied, ALL.len(), "each migration once");
}

#[tokio::test]
async fn the_script_makes_a_store_and_may_be_applied_twice() {
    let (_directory, path, _) = store().await;
    let script = tidegate_sqlite::script();
    Connection::open(&path).unwrap().execute_batch(&script).unwrap();
    let path = path.with_extension("by-hand");
    Connection::open(&path).unwrap().execute_batch(&script).unwrap();
    let store = Sqlite::open(&path, Open::Existing).unwrap();
    assert_eq!(store.schema().await.unwrap(), Schema::Current);
    submit(&store, 1).await;
}

#[tokio::test]
async fn a_file_of_ours_without_a_version_is_outdated_and_not_missing() {
    let (_directory, path, store) = store().await;
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 0).unwrap();
    let needed = ALL.len() as i64;
    assert_eq!(store.schema().await.unwrap(), Schema::Outdated { found: 0, needed });
}

#[tokio::test]
async fn additions_by_a_newer_binary_do_not_hurt() {
    let (_directory, path, store) = store().await;
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    assert_eq!(store.schema().await.unwrap(), Schema::Current);
    assert!(store.migrate().await.unwrap().is_empty());
    assert_eq!(pragma::<i64>(&path, "user_version"), 99);
}

#[tokio::test]
async fn the_view_gives_one_row_per_result() {
    let (_directory, path, store) = store().await;
    submit(&store, 9).await;
    let leases = claim(&store, 2, 4).await.leases;
    let [dense, sparse] = [
        Page {
            range: Range::new(0, 2),
            indexes: None,
            results: r#"[{"points":1.5},"it's"]"#.to_owned(),
        },
        Page { range: Range::new(2, 4), indexes: Some(vec![3]), results: "[true]".to_owned() },
    ];
    for (sequence, page) in [(0, dense), (1, sparse)] {
        let settlement = settlement(&leases[sequence], Some(page), sequence as i64 + 1);
        assert_eq!(store.settle(settlement).await.unwrap(), Settled::Applied);
    }
    let connection = Connection::open(&path).unwrap();
    let mut query = connection.prepare(r#"SELECT "index", result FROM results"#).unwrap();
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let rows: Vec<(i64, String)> = rows.collect::<Result<_, _>>().unwrap();
    let expected = [(0, r#"{"points":1.5}"#), (1, r#""it's""#), (3, "true")];
    assert_eq!(rows, expected.map(|(index, result)| (index, result.to_owned())));
}

/// Whoever looks while another process migrates sees all of the schema, or nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_is_never_seen_in_part() {
    for _ in 0..20 {
        let (_directory, path) = place();
        let [migrating, looking] = [(); 2].map(|()| Sqlite::open(&path, Open::Create).unwrap());
        let migrated = tokio::spawn(async move { migrating.migrate().await.map(drop) });
        loop {
            match looking.schema().await.unwrap() {
                Schema::Missing => {}
                Schema::Current => break,
                Schema::Outdated { found, needed } => panic!("{found} of {needed}"),
            }
        }
        migrated.await.unwrap().unwrap();
    }
}
