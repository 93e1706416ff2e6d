//! The conformance suite, directly and through pgbouncer in transaction mode.

mod support;

use std::sync::Arc;
use support::{Database, PGBOUNCER, POSTGRES};
use tidegate_conformance::Fresh;

async fn fresh(variable: &str) -> Fresh {
    let database = Arc::new(Database::create(variable).await);
    let store = database.store().await;
    let again = database.clone();
    Fresh::new(store)
        .reopen(move || {
            let database = again.clone();
            async move { database.connect().await }
        })
        .afterwards(async move { drop(database) })
}

mod direct {
    use super::*;
    tidegate_conformance::conformance!(|| fresh(POSTGRES));
}

mod pgbouncer {
    use super::*;
    tidegate_conformance::conformance!(|| fresh(PGBOUNCER));
}
