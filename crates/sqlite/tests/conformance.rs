//! What every store must do.

use std::path::PathBuf;
use tidegate_conformance::{Fresh, conformance};
use tidegate_core::Migrate;
use tidegate_sqlite::{Open, Sqlite};

async fn fresh() -> Fresh {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let path = directory.path().join("tidegate.db");
    let store = open(path.clone());
    store.migrate().await.expect("a new file can be migrated");
    Fresh::new(store)
        .reopen(move || std::future::ready(open(path.clone())))
        .afterwards(async move { drop(directory) })
}

fn open(path: PathBuf) -> Sqlite {
    Sqlite::open(&path, Open::Create).expect("the file can be opened")
}

conformance!(fresh);
