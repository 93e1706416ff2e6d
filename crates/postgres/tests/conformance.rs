//! What every store must do: directly, and through pgbouncer in transaction mode.

#[allow(dead_code, reason = "the other tests use more of it")]
mod support;

use std::env;
use support::{Database, PGBOUNCER, POSTGRES};
use tidegate_conformance::Fresh;
use tidegate_core::Migrate;
use tidegate_postgres::Postgres;
use url::Url;

/// A database of its own, made by the server itself and used through the server in `variable`.
async fn fresh(variable: &str) -> Fresh {
    let database = Database::create(POSTGRES).await;
    let server = env::var(variable).expect("the test server's URL is in the environment");
    let mut url = Url::parse(&server).expect("the test server's URL is a URL");
    url.set_path(database.url().path());
    let store = connect(url.clone()).await;
    store.migrate().await.expect("an empty database can be migrated");
    Fresh::new(store).reopen(move || connect(url.clone())).afterwards(async move { drop(database) })
}

async fn connect(url: Url) -> Postgres {
    Postgres::connect(url.as_str()).await.expect("the test server answers")
}

mod direct {
    use super::*;

    tidegate_conformance::conformance!(|| fresh(POSTGRES));
}

mod through_pgbouncer {
    use super::*;

    tidegate_conformance::conformance!(|| fresh(PGBOUNCER));
}
