//! Which files are taken for a store, and what is left alone.

use crate::{place, store};
use rusqlite::Connection;
use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
};
use tidegate_core::{BatchId, Inspect, Kind, Migrate, StoreError, migrate::Schema};
use tidegate_sqlite::{Open, Sqlite};

fn refusal(path: &Path, open: Open) -> StoreError {
    Sqlite::open(path, open).err().expect("it is refused")
}

fn names(directory: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
    fs::read_dir(directory).unwrap().map(|entry| name(entry).into_string().unwrap()).collect()
}

#[test]
fn a_file_that_is_no_database_is_refused_and_unchanged() {
    for content in ["dear diary".to_owned(), "dear diary\n".repeat(10_000)] {
        let (directory, path) = place();
        fs::write(&path, &content).unwrap();
        for open in [Open::Create, Open::Existing] {
            let error = refusal(&path, open);
            assert_eq!(error.kind(), Kind::BadAddress);
            assert!(error.to_string().contains("is no SQLite database"), "{error}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
        assert_eq!(names(directory.path()), ["tidegate.db"]);
    }
}

#[test]
fn a_foreign_database_is_refused_and_unchanged() {
    for mode in ["delete", "wal"] {
        let (_directory, path) = place();
        let foreign = Connection::open(&path).unwrap();
        foreign.pragma_update(None, "journal_mode", mode).unwrap();
        foreign.execute_batch("CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)").unwrap();
        drop(foreign);
        let before = fs::read(&path).unwrap();
        let error = refusal(&path, Open::Create);
        assert_eq!(error.kind(), Kind::BadAddress);
        assert!(error.to_string().contains("another program's"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}

#[test]
fn a_missing_file_is_refused_unless_it_may_be_created() {
    let (directory, path) = place();
    let error = refusal(&path, Open::Existing);
    assert_eq!(error.kind(), Kind::BadAddress);
    assert!(error.to_string().contains("there is no store at"), "{error}");
    let error = refusal(&directory.path().join("no/where.db"), Open::Create);
    assert_eq!(error.kind(), Kind::BadAddress);
    assert!(error.to_string().contains("there is no directory"), "{error}");
    let error = refusal(directory.path(), Open::Create);
    assert_eq!(error.kind(), Kind::BadAddress);
    assert!(names(directory.path()).is_empty());
}

#[tokio::test]
async fn what_is_read_only_is_refused() {
    let (directory, path, store) = store().await;
    drop(store);
    let check = |path_of_mode: &Path, mode| {
        let before = fs::metadata(path_of_mode).unwrap().permissions();
        fs::set_permissions(path_of_mode, Permissions::from_mode(mode)).unwrap();
        let error = refusal(&path, Open::Existing);
        assert_eq!(error.kind(), Kind::ReadOnly, "{error}");
        fs::set_permissions(path_of_mode, before).unwrap();
    };
    check(&path, 0o444);
    check(directory.path(), 0o555);
    Sqlite::open(&path, Open::Existing).unwrap();
}

#[tokio::test]
async fn an_empty_file_has_no_schema_and_says_so() {
    let (_directory, path) = place();
    fs::write(&path, "").unwrap();
    let store = Sqlite::open(&path, Open::Existing).unwrap();
    assert_eq!(store.schema().await.unwrap(), Schema::Missing);
    let error = store.aggregates(BatchId(1)).await.unwrap_err();
    assert_eq!(error.kind(), Kind::SchemaOutdated);
    assert!(error.to_string().contains("tidegate migrate"), "{error}");
    drop(store);
    assert!(fs::read(&path).unwrap().is_empty());
}

#[tokio::test]
async fn closing_moves_the_log_into_the_file() {
    let (directory, _path, store) = store().await;
    let clone = store.clone();
    drop(store);
    assert!(names(directory.path()).len() > 1, "a handle is left");
    drop(clone);
    assert_eq!(names(directory.path()), ["tidegate.db"]);
}

/// The mode of each file beside a store, by the end of its name.
fn modes(path: &Path) -> Vec<(&'static str, u32)> {
    let mode = |end: &str| fs::metadata(format!("{}{end}", path.display())).ok();
    let found = ["", "-wal", "-shm"].into_iter().filter_map(|end| Some((end, mode(end)?)));
    found.map(|(end, metadata)| (end, metadata.permissions().mode() & 0o777)).collect()
}

#[tokio::test]
async fn a_new_store_is_for_its_owner_only() {
    let (directory, path) = place();
    let link = directory.path().join("link.db");
    std::os::unix::fs::symlink("tidegate.db", &link).unwrap();
    let (chain, far) = (directory.path().join("chain.db"), directory.path().join("far.db"));
    std::os::unix::fs::symlink("link.db", &chain).unwrap();
    std::os::unix::fs::symlink(&chain, &far).unwrap();
    for open in [&path, &link, &chain, &far] {
        let store = Sqlite::open(open, Open::Create).unwrap();
        store.migrate().await.unwrap();
        assert_eq!(modes(&path), [("", 0o600), ("-wal", 0o600), ("-shm", 0o600)]);
        drop(store);
        fs::remove_file(&path).unwrap();
    }
}

#[tokio::test]
async fn an_existing_store_keeps_its_mode() {
    let (_directory, path, made) = store().await;
    drop(made);
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    let store = Sqlite::open(&path, Open::Create).unwrap();
    store.batches(tidegate_core::inspect::BatchQuery::newest(1)).await.unwrap();
    assert!(modes(&path).iter().all(|(_, mode)| *mode == 0o640), "{:?}", modes(&path));
}
