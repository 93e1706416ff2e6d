//! Notes about the pace of sinks.

use crate::harness::Bench;
use std::time::Duration;
use tidegate_core::{
    BatchId, WorkerId,
    pace::{PaceNote, PaceQuery},
};

fn note(batch: i64, worker: &str, sink: &str, body: &str) -> PaceNote {
    PaceNote {
        sink: sink.to_owned(),
        batch: BatchId(batch),
        worker: WorkerId(worker.to_owned()),
        body: body.to_owned(),
    }
}

async fn bodies(bench: &Bench, query: PaceQuery) -> Vec<String> {
    let noted = bench
        .store
        .paces(PaceQuery { limit: 10, ..query })
        .await
        .expect("the store takes and gives notes");
    assert!(noted.iter().all(|noted| noted.age < Duration::from_secs(3_600)));
    noted.into_iter().map(|noted| noted.note.body).collect()
}

pub(crate) async fn a_worker_writes_over_its_own_note(bench: Bench) {
    for body in ["{\"a\":1}", "{\"é\":\"\\u0000\"}"] {
        bench
            .store
            .note_pace(note(1, "one", "sink", body))
            .await
            .expect("the store takes and gives notes");
    }
    bench
        .store
        .note_pace(note(1, "two", "sink", "{}"))
        .await
        .expect("the store takes and gives notes");
    let all = bodies(&bench, PaceQuery::default()).await;
    assert_eq!(all.len(), 2);
    assert!(all.contains(&"{\"é\":\"\\u0000\"}".to_owned()) && all.contains(&"{}".to_owned()));
}

pub(crate) async fn notes_are_found_by_batch_and_by_sink(bench: Bench) {
    for (batch, sink) in [(1, "a"), (2, "b"), (3, "a")] {
        let body = batch.to_string();
        bench
            .store
            .note_pace(note(batch, "one", sink, &body))
            .await
            .expect("the store takes and gives notes");
    }
    let by_batch = PaceQuery { batch: Some(BatchId(2)), ..PaceQuery::default() };
    assert_eq!(bodies(&bench, by_batch).await, ["2"]);
    let by_sink = PaceQuery { sink: Some("a".to_owned()), ..PaceQuery::default() };
    assert_eq!(bodies(&bench, by_sink).await.len(), 2);
    let neither =
        PaceQuery { batch: Some(BatchId(2)), sink: Some("a".to_owned()), ..PaceQuery::default() };
    assert!(bodies(&bench, neither).await.is_empty());
    let within =
        |time| PaceQuery { sink: Some("a".to_owned()), within: Some(time), ..PaceQuery::default() };
    assert_eq!(bodies(&bench, within(Duration::from_secs(3_600))).await.len(), 2);
}
