use crate::client::{LONG, NDJSON, Pair, start};
use std::time::Duration;
use tidegate_drill::{Budget, BudgetKind, Concurrency, Hint, Rate, Spec};

fn budget(kind: BudgetKind, limit: f64) -> Spec {
    Spec { budgets: vec![Budget { kind, limit, window: LONG }], ..Spec::default() }
}

fn concurrency(limit: usize, delay: Duration) -> Spec {
    Spec { concurrency: Some(Concurrency { limit }), delay, ..Spec::default() }
}

async fn write(it: &Pair, credential: &str) -> crate::client::Answer {
    it.client.send("POST", "/records", &[NDJSON, ("authorization", credential)], "{}").await
}

#[tokio::test]
async fn more_in_flight_than_the_limit_is_rejected_at_once() {
    let it = start(concurrency(2, LONG));
    let clients = [(); 2].map(|()| {
        let client = it.client.clone();
        tokio::spawn(async move { client.lines("{}").await })
    });
    it.until(|seen| seen.in_flight == 2).await;
    let answer = it.client.lines("{}").await;
    let body = r#"{"error":"more than 2 requests in flight","limit":"concurrency"}"#;
    assert_eq!(answer.pair(), (429, body));
    assert_eq!(answer.header("retry-after"), None);
    // Who goes away leaves a place.
    clients.iter().for_each(tokio::task::JoinHandle::abort);
    let seen = it.until(|seen| seen.in_flight == 0).await;
    assert_eq!((seen.abandoned, seen.throttled.concurrency, seen.max_in_flight), (2, 1, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_answers_never_exceeds_the_limit() {
    for delay in [Duration::ZERO, Duration::from_millis(1)] {
        let it = start(concurrency(8, delay));
        let workers = [(); 8].map(|()| {
            let client = it.client.clone();
            tokio::spawn(async move {
                for _ in 0..100 {
                    assert_eq!(client.lines("{}").await.status, 200);
                }
            })
        });
        for worker in workers {
            worker.await.unwrap();
        }
        let seen = it.service.counters();
        assert_eq!((seen.accepted, seen.throttled.total), (800, 0));
        assert!(seen.max_in_flight <= 8);
    }
}

#[tokio::test]
async fn a_rate_is_enforced_per_credential() {
    let rate = Some(Rate { per_second: 3 });
    let it = start(Spec { rate, ratelimit_headers: true, ..Spec::default() });
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(write(&it, "Bearer one").await.status);
    }
    assert_eq!(statuses, [200, 200, 200, 429]);
    let other = write(&it, "Bearer other").await;
    let told = ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"];
    let told = told.map(|name| other.header(name).unwrap().to_owned());
    assert_eq!((other.status, told), (200, ["3", "2", "1"].map(str::to_owned)));
    assert_eq!(it.service.counters().throttled.rate, 1);
}

#[tokio::test]
async fn a_budget_of_requests_is_enforced() {
    let hint = Some(Hint { parallelism: 4 });
    let it = start(Spec { hint, ratelimit_headers: true, ..budget(BudgetKind::Requests, 2.0) });
    for left in ["1", "0"] {
        let answer = it.client.lines("{}").await;
        assert_eq!(answer.header("ratelimit-remaining"), Some(left));
        assert_eq!(answer.header("x-ms-dop-hint"), Some("4"));
    }
    let answer = it.client.lines("{}").await;
    let body = r#"{"error":"more than 2 requests in the last 60 s","limit":"requests"}"#;
    assert_eq!(answer.pair(), (429, body));
    assert_eq!(answer.header("ratelimit-reset"), Some("60"));
    assert_eq!(it.service.counters().throttled.budgets, [1]);
}

#[tokio::test]
async fn a_budget_of_execution_time_is_enforced() {
    let delay = Duration::from_millis(20);
    let it = start(Spec { delay, ..budget(BudgetKind::ExecutionSeconds, 0.03) });
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(it.client.lines("{}").await.status);
    }
    assert_eq!(statuses, [200, 200, 429]);
    let seen = it.service.counters();
    assert_eq!(seen.throttled.budgets, [1]);
    assert!(seen.elapsed_seconds >= 0.04, "{seen:?}");
}

#[tokio::test]
async fn requests_inside_a_retry_after_are_counted() {
    let once = budget(BudgetKind::Requests, 1.0);
    let retry_after = Some(Duration::from_millis(29_500));
    let it = start(Spec { retry_after, retry_after_grace: Duration::ZERO, ..once });
    assert_eq!(it.client.lines("{}").await.status, 200);
    let rejected = it.client.lines("{}").await;
    assert_eq!((rejected.status, rejected.header("retry-after")), (429, Some("30")));
    assert_eq!(it.service.counters().inside_retry_after, 0);
    it.client.lines("{}").await;
    write(&it, "Bearer other").await;
    assert_eq!(it.service.counters().inside_retry_after, 1);
}

#[tokio::test]
async fn a_retry_after_can_be_a_date() {
    let once = budget(BudgetKind::Requests, 1.0);
    let it = start(Spec { retry_after: Some(LONG), retry_after_date: true, ..once });
    it.client.lines("{}").await;
    let rejected = it.client.lines("{}").await;
    let date = httpdate::parse_http_date(rejected.header("retry-after").unwrap()).unwrap();
    let wait = date.duration_since(std::time::SystemTime::now()).unwrap();
    assert!(
        wait > LONG - Duration::from_secs(10) && wait <= LONG + Duration::from_secs(1),
        "{wait:?}"
    );
}
