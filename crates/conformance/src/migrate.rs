//! Migrating: as often as one likes, by as many as like.

use crate::harness::{Bench, at_once};
use tidegate_core::migrate::Schema;

pub(crate) async fn twice_is_fine_and_keeps_the_content(bench: Bench) {
    let id = bench.submit(5).await;
    let before = bench.observe(id).await;
    assert!(bench.store.migrate().await.expect("migrate").is_empty(), "it was migrated before");
    assert_eq!(bench.store.schema().await.expect("read the schema"), Schema::Current);
    assert_eq!(bench.observe(id).await, before);
}

pub(crate) async fn by_many_at_once(bench: Bench) {
    let migrate = |_| {
        let bench = bench.clone();
        async move { bench.store.migrate().await.expect("migrate").len() }
    };
    assert_eq!(at_once(4, migrate).await, [0; 4]);
    assert_eq!(bench.store.schema().await.expect("read the schema"), Schema::Current);
}
