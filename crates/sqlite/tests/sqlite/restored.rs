//! A file whose content is replaced by a backup while workers live.

use crate::{HOUR, claim, dense, settlement, store, submit};
use rusqlite::Connection;
use std::path::Path;
use tidegate_core::{
    Inspect, Source,
    settle::{AccumulatorId, Settled, Settlement},
    source::Renewal,
};

const TABLES: [&str; 7] = ["batch", "lease", "exception", "page", "part", "meta", "snapshot"];

fn save(path: &Path, backup: &Path) {
    let backup = backup.to_str().unwrap();
    Connection::open(path).unwrap().execute("VACUUM INTO ?1", [backup]).unwrap();
}

/// Writes the backup's content into the file, as `.restore` does.
fn restore(path: &Path, backup: &Path) {
    let connection = Connection::open(path).unwrap();
    connection.execute("ATTACH ?1 AS backup", [backup.to_str().unwrap()]).unwrap();
    let copy =
        |table| format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM backup.{table};");
    let copies: String = TABLES.map(copy).concat();
    connection.execute_batch(&format!("BEGIN IMMEDIATE; {copies} COMMIT")).unwrap();
}

#[tokio::test]
async fn a_settlement_on_top_of_one_that_a_backup_does_not_have_is_forgotten() {
    let (directory, path, store) = store().await;
    let backup = directory.path().join("backup.db");
    let batch = submit(&store, 30).await.id;
    let leases = claim(&store, 3, 10).await.leases;
    let first = settlement(&leases[0], dense(&leases[0]), 1);
    assert_eq!(store.settle(first).await.unwrap(), Settled::Applied);
    save(&path, &backup);
    let second = settlement(&leases[1], dense(&leases[1]), 2);
    assert_eq!(store.settle(second.clone()).await.unwrap(), Settled::Applied);
    restore(&path, &backup);

    let third = settlement(&leases[2], dense(&leases[2]), 3);
    assert_eq!(store.settle(third.clone()).await.unwrap(), Settled::Forgotten(vec![batch]));
    // Begun anew, both count once: their leases are still held.
    for (accumulator, lost) in [(8, third), (9, second)] {
        let mut totals = lost.totals.clone();
        totals[0].accumulator = AccumulatorId(accumulator);
        totals[0].before = 0;
        let anew = Settlement { totals, ..lost };
        assert_eq!(store.settle(anew).await.unwrap(), Settled::Applied);
    }
    assert_eq!(
        store.pages(tidegate_core::inspect::PageQuery::first(batch, 9)).await.unwrap().len(),
        3
    );
}

#[tokio::test]
async fn a_lease_that_a_backup_does_not_have_is_late() {
    let (directory, path, store) = store().await;
    let backup = directory.path().join("backup.db");
    submit(&store, 10).await;
    save(&path, &backup);
    let old = claim(&store, 1, 10).await.leases.remove(0);
    restore(&path, &backup);
    let new = claim(&store, 1, 10).await.leases.remove(0);
    assert_eq!(new.items, old.items);
    assert_ne!(new.fence, old.fence, "the same number is drawn again, not the same fence");
    let settled = store.settle(settlement(&old, dense(&old), 1)).await.unwrap();
    assert_eq!(settled, Settled::Late(vec![old.fence]));
    let renewal = Renewal { leases: vec![old.clone(), new.clone()], lease: HOUR };
    assert_eq!(store.renew(renewal).await.unwrap(), [old.fence]);
    store.give_back(vec![old]).await.unwrap();
    let settled = store.settle(settlement(&new, dense(&new), 1)).await.unwrap();
    assert_eq!(settled, Settled::Applied);
}
