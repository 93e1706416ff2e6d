use crate::client::{Client, Pair, start};
use tidegate_drill::{Counters, Spec};

async fn until_hung(it: &Pair) -> Counters {
    let client = Client::new(it.service.url());
    let sending = tokio::spawn(async move { client.lines("{\"id\":1}").await });
    it.until(|seen| seen.dropped == 1).await;
    assert_eq!(it.service.counters().in_flight, 1);
    assert!(!sending.is_finished());
    sending.abort();
    it.until(|seen| seen.in_flight == 0).await
}

#[tokio::test]
async fn failures_store_nothing() {
    let it = start(Spec { fail_share: 1.0, ..Spec::default() });
    assert_eq!(
        it.client.lines("{}").await.pair(),
        (500, r#"{"error":"failed, as the spec asks"}"#)
    );
    let seen = it.service.counters();
    assert_eq!((seen.failed, seen.records), (1, 0));
}

#[tokio::test]
async fn unavailable_says_not_when() {
    let it = start(Spec { unavailable_share: 1.0, ..Spec::default() });
    let answer = it.client.lines("{}").await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, None));
    assert_eq!(it.service.counters().unavailable, 1);
}

#[tokio::test]
async fn a_share_of_the_requests_fails() {
    let it = start(Spec { fail_share: 0.25, seed: 3, ..Spec::default() });
    let mut failed = 0;
    for _ in 0..200 {
        failed += u64::from(it.client.lines("{}").await.status == 500);
    }
    let seen = it.service.counters();
    assert_eq!((seen.failed, seen.accepted), (failed, 200 - failed));
    assert!((20..80).contains(&failed), "{failed}");
}

#[tokio::test]
async fn a_dropped_request_hangs_until_its_client_gives_up() {
    let it = start(Spec { drop_share: 1.0, ..Spec::default() });
    let seen = until_hung(&it).await;
    assert_eq!((seen.requests, seen.dropped, seen.abandoned, seen.records), (1, 1, 0, 0));
}

#[tokio::test]
async fn a_dropped_request_may_have_been_carried_out() {
    let it = start(Spec { drop_share: 1.0, drop_after_storing: true, ..Spec::default() });
    assert_eq!(until_hung(&it).await.records, 1);
}

#[tokio::test]
async fn the_same_records_are_always_refused() {
    let spec = Spec { bad_share: 0.2, per_record_answers: true, ..Spec::default() };
    let lines: String = (0..100).map(|i| format!("{{\"id\":{i}}}\n")).collect();
    let (one, other) = (start(spec.clone()), start(spec));
    let answer = one.client.lines(&lines).await;
    assert_eq!(answer.body, one.client.lines(&lines).await.body);
    assert_eq!(answer.body, other.client.lines(&lines).await.body);
    let refused = other.service.counters().refused_records;
    assert!((5..40).contains(&refused), "{refused}");
}
