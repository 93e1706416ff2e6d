//! A statement that nobody waits for any longer is stopped on the server, also over TLS.

use crate::{Secure, proxy::Proxy};
use std::time::{Duration, Instant};
use tidegate_core::{
    Kind, Migrate, Source, WorkerId,
    claim::{ClaimRequest, Length, Lengths},
};
use tidegate_postgres::Postgres;

/// How a request for TLS begins, behind its length.
const TLS_REQUEST: [u8; 4] = 80_877_103_u32.to_be_bytes();

/// Claims while the table is locked, until the deadline, and waits until the server does nothing any more.
pub async fn claim_past_the_deadline(store: &Postgres, admin: &tokio_postgres::Client) {
    admin.batch_execute("begin; lock table tidegate.batch in access exclusive mode").await.unwrap();
    let unknown = Length { most: 1, least: 1 };
    let request = ClaimRequest {
        worker: WorkerId("a worker".to_owned()),
        slots: 1,
        lengths: Lengths { unknown, known: Vec::new() },
        workloads: vec!["noop".to_owned()],
        only: None,
        lease: Duration::from_secs(3),
        known: Vec::new(),
    };
    let error = store.claim(request.clone()).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Deadline, "{error}");
    let waits = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'";
    let begun = Instant::now();
    while admin.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) > 0 {
        assert!(begun.elapsed() < Duration::from_secs(30), "the statement was not stopped");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    admin.batch_execute("commit").await.unwrap();
    store.claim(request).await.unwrap();
}

#[tokio::test]
async fn a_statement_past_its_deadline_is_stopped_over_tls() {
    let secure = Secure::start().await;
    let admin = secure.server.client().await;
    secure.server.store().await.migrate().await.unwrap();
    let proxy = Proxy::start(secure.server.cluster.port()).await;
    let files = secure.directory.path().display();
    let address = format!(
        "host=localhost port={} user=postgres sslmode=verify-full sslrootcert={files}/ca.pem",
        proxy.port()
    );
    let store = Postgres::connect(&address).await.unwrap();
    claim_past_the_deadline(&store, &admin).await;
    let openings = proxy.openings();
    assert!(openings.len() >= 3, "one connection, what canceled it, and another one");
    assert!(openings.iter().all(|it| it[4..8] == TLS_REQUEST), "nothing was sent in the clear");
}
