use crate::client::{JSON, NDJSON, start};
use serde_json::json;
use tidegate_drill::Spec;

#[tokio::test]
async fn lines_arrays_and_objects_are_records() {
    let it = start(Spec::default());
    let lines = it.client.lines("{\"id\":1}\n\n{\"id\":2}\r\n").await;
    assert_eq!(lines.pair(), (200, r#"{"stored":2}"#));
    let array = it.client.json("/records", r#"[{"id":3}, {"id":4}]"#).await;
    assert_eq!(array.pair(), (200, r#"{"stored":2}"#));
    for method in ["POST", "PUT", "PATCH"] {
        let answer = it.client.send(method, "/records", &[JSON], r#"{"id":5}"#).await;
        assert_eq!(answer.pair(), (200, r#"{"stored":1}"#));
    }
    let seen = it.service.counters();
    assert_eq!((seen.requests, seen.accepted), (5, 5));
    assert_eq!((seen.records, seen.duplicates), (5, 2));
    assert!(seen.bytes > 0 && seen.connections >= 1 && seen.max_in_flight == 1);
}

#[tokio::test]
async fn a_record_is_recognized_by_key_then_id_then_path_then_text() {
    let it = start(Spec { id_field: "no".to_owned(), ..Spec::default() });
    let key = ("idempotency-key", "7");
    it.client.send("POST", "/records", &[JSON, key], r#"{"no":1}"#).await;
    it.client.send("PUT", "/records/8", &[JSON], r#"{"no":"7"}"#).await;
    it.client.send("PUT", "/records/7", &[JSON], "{}").await;
    assert_eq!((it.service.counters().records, it.service.counters().duplicates), (1, 2));
    it.client.lines("{\"a\":1}\n{\"a\":1}\n{\"a\":2}").await;
    assert_eq!((it.service.counters().records, it.service.counters().duplicates), (3, 3));
    // One key cannot stand for two records.
    it.client.send("POST", "/records", &[NDJSON, key], "{\"no\":10}\n{\"no\":11}").await;
    assert_eq!(it.service.counters().records, 5);
}

#[tokio::test]
async fn deleting_a_record_is_another_act_than_writing_it() {
    let it = start(Spec::default());
    it.client.send("PUT", "/records/7", &[JSON], "{}").await;
    for _ in 0..2 {
        let answer = it.client.send("DELETE", "/records/7", &[], "").await;
        assert_eq!(answer.pair(), (200, r#"{"stored":1}"#));
    }
    assert_eq!((it.service.counters().records, it.service.counters().duplicates), (2, 1));
}

#[tokio::test]
async fn a_bad_record_refuses_its_whole_request() {
    let it = start(Spec::default());
    let answer =
        it.client.lines("{\"id\":1}\n{\"id\":2,\"bad\":true}\n{\"id\":3,\"bad\":false}").await;
    let error = "record 1 has `bad` = true; nothing is stored";
    assert_eq!((answer.status, answer.json()), (400, json!({ "error": error, "index": 1 })));
    let seen = it.service.counters();
    assert_eq!((seen.records, seen.refused_records, seen.refused, seen.accepted), (0, 1, 1, 0));
}

#[tokio::test]
async fn each_record_can_have_its_own_answer() {
    let it = start(Spec { per_record_answers: true, ..Spec::default() });
    let answer = it.client.lines("{\"id\":1}\n{\"id\":2,\"bad\":true}\n{\"id\":").await;
    assert_eq!(answer.status, 207);
    let results = answer.json()["results"].clone();
    assert_eq!(results[0], json!({ "status": 200 }));
    assert_eq!(results[1], json!({ "status": 422, "error": "has `bad` = true" }));
    assert_eq!(results[2]["status"], 422);
    let seen = it.service.counters();
    assert_eq!((seen.records, seen.refused_records, seen.accepted), (1, 2, 1));
}

#[tokio::test]
async fn what_is_too_large_or_not_understood_is_refused() {
    let it = start(Spec { max_group: Some(2), max_bytes: Some(40), ..Spec::default() });
    assert_eq!(it.client.lines("{\"id\":1}\n{\"id\":2}\n{\"id\":3}").await.status, 413);
    assert_eq!(it.client.lines(&format!("{{\"id\":\"{}\"}}", "x".repeat(40))).await.status, 413);
    assert_eq!(it.client.lines("").await.status, 400);
    assert_eq!(it.client.json("/records", "[{]").await.status, 400);
    let text = it.client.send("POST", "/records", &[("content-type", "text/csv")], "1").await;
    assert_eq!(text.status, 415);
    assert_eq!((it.service.counters().refused, it.service.counters().records), (5, 0));
}

#[tokio::test]
async fn a_large_body_arrives_whole() {
    let it = start(Spec::default());
    let lines: String =
        (0..100_000).map(|i| format!("{{\"id\":{i},\"text\":\"some text\"}}\n")).collect();
    assert_eq!(it.client.lines(&lines).await.pair(), (200, r#"{"stored":100000}"#));
    assert_eq!(it.service.counters().bytes, lines.len() as u64);
}
