//! What the service answers, and what it means.

use crate::{
    canned::Canned,
    support::{deliver, done, http, start},
};
use std::time::Duration;
use tidegate_core::{
    Sink,
    sink::{Hint, Outcome, Verdict},
};
use tidegate_drill::{Budget, BudgetKind, Rate, Spec};

const GROUP: &str = "body = 'array'";

async fn outcome(spec: Spec, payloads: &[&str]) -> Outcome {
    let service = start(spec);
    let sink = http(&format!("{}/records", service.url()), GROUP);
    deliver(&sink, payloads).await.outcome
}

async fn canned(answer: &str, body: &str) -> Outcome {
    let service = Canned::start(answer, body).await;
    let sink = http(&format!("{}/records", service.url), GROUP);
    deliver(&sink, &["{}", "{}"]).await.outcome
}

#[tokio::test]
async fn success_is_success_for_all() {
    assert_eq!(outcome(Spec::default(), &[r#"{"id":1}"#, r#"{"id":2}"#]).await, done(2));
}

#[tokio::test]
async fn each_record_may_have_its_own_answer() {
    let spec = Spec { per_record_answers: true, ..Spec::default() };
    let outcome = outcome(spec, &[r#"{"id":1}"#, r#"{"id":2,"bad":true}"#]).await;
    let dead = Verdict::Dead("it answered 422: has `bad` = true".to_owned());
    assert_eq!(outcome, Outcome::Answered(vec![Verdict::Done, dead]));
}

#[tokio::test]
async fn a_bad_record_refuses_its_group() {
    let outcome = outcome(Spec::default(), &[r#"{"id":1}"#, r#"{"id":2,"bad":true}"#]).await;
    let reason = "it answered 400: record 1 has `bad` = true; nothing is stored".to_owned();
    assert_eq!(outcome, Outcome::Refused(reason));
}

#[tokio::test]
async fn failures_are_told_apart() {
    let failed = Spec { fail_share: 1.0, ..Spec::default() };
    let retry = Verdict::Retry("it answered 500: failed, as the spec asks".to_owned());
    assert_eq!(outcome(failed, &["{}"]).await, Outcome::Answered(vec![retry]));
    let unavailable = Spec { unavailable_share: 1.0, ..Spec::default() };
    let reason = "it answered 503: unavailable, as the spec asks".to_owned();
    assert_eq!(outcome(unavailable, &["{}"]).await, Outcome::Unavailable(reason));
    let small = Spec { max_group: Some(1), ..Spec::default() };
    let reason = "it answered 413: 2 records in one request; at most 1".to_owned();
    assert_eq!(outcome(small, &["{}", "{}"]).await, Outcome::TooLarge(reason));
}

#[tokio::test]
async fn a_throttle_says_when_to_come_again_in_seconds_or_as_a_date() {
    for retry_after_date in [false, true] {
        let retry_after = Some(Duration::from_secs(100));
        let rate = Some(Rate { per_second: 1 });
        let service = start(Spec { rate, retry_after, retry_after_date, ..Spec::default() });
        let sink = http(&format!("{}/records", service.url()), GROUP);
        assert_eq!(deliver(&sink, &["{}"]).await.outcome, done(1));
        let Outcome::Throttled { retry_after, reason } = deliver(&sink, &["{}"]).await.outcome
        else {
            panic!("not throttled")
        };
        assert_eq!(reason, "it answered 429: more than 1 requests in the last second");
        let wait = retry_after.unwrap().as_secs_f64();
        assert!((98.0..=101.0).contains(&wait), "{wait}");
    }
}

#[tokio::test]
async fn what_the_service_tells_about_its_pace_is_passed_on() {
    let window = Duration::from_secs(300);
    let service = start(Spec {
        hint: Some(tidegate_drill::Hint { parallelism: 10 }),
        budgets: vec![Budget { kind: BudgetKind::Requests, limit: 100.0, window }],
        ratelimit_headers: true,
        ..Spec::default()
    });
    let sink = http(&format!("{}/records", service.url()), GROUP);
    let hint = deliver(&sink, &["{}"]).await.hint;
    assert_eq!(hint.parallelism, Some(10));
    let (left, until) = hint.remaining.unwrap();
    assert_eq!(left, 99);
    assert!(until <= window && until > window / 2, "{until:?}");
}

#[tokio::test]
async fn a_service_that_never_answers_times_out() {
    let service = start(Spec { drop_share: 1.0, ..Spec::default() });
    let sink = http(&format!("{}/records", service.url()), "timeout = 0.2");
    let answer = deliver(&sink, &["{}"]).await;
    assert_eq!((answer.outcome, answer.hint), (Outcome::TimedOut, Hint::default()));
}

#[tokio::test]
async fn a_service_that_is_not_there_is_unavailable() {
    let service = start(Spec::default());
    let sink = http(&format!("{}/records", service.url()), "");
    service.stop().await;
    let Outcome::Unavailable(reason) = deliver(&sink, &["{}"]).await.outcome else { panic!() };
    assert!(reason.starts_with("cannot connect to 127.0.0.1: "), "{reason}");
    let error = sink.check().await.unwrap_err().to_string();
    assert!(error.starts_with("cannot connect to 127.0.0.1: "), "{error}");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Canned::start("200 OK", "").await;
    let answer = format!("302 Found\nLocation: {}/x?token=1", elsewhere.url);
    let Outcome::Broken(reason) = canned(&answer, "").await else { panic!() };
    let expected = format!(
        "it answered 302 to {}/x: redirects are not followed, use that address",
        elsewhere.url
    );
    assert_eq!(reason, expected);
    assert_eq!(elsewhere.asked(), [""; 0]);
}

#[tokio::test]
async fn an_address_where_nothing_is_breaks_the_sink() {
    let gone = canned("410 Gone", "").await;
    let reason = "the receiver is gone for good (410)".to_owned();
    assert_eq!(gone, Outcome::Gone(reason));
    let service = start(Spec::default());
    let sink = http(&format!("{}/nowhere", service.url()), GROUP);
    let Outcome::Broken(reason) = deliver(&sink, &["{}"]).await.outcome else { panic!() };
    assert!(reason.starts_with("there is nothing at this address: it answered 404"), "{reason}");
}

#[tokio::test]
async fn a_service_may_say_when_it_is_back() {
    let outcome = canned("503 Service Unavailable\nRetry-After: 7", "{}").await;
    let Outcome::Throttled { retry_after, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(retry_after, Some(Duration::from_secs(7)));
}

#[tokio::test]
async fn no_answer_is_read_without_end() {
    let long = "x".repeat(3 << 20);
    let Outcome::Refused(reason) = canned("400 Bad Request", &long).await else { panic!() };
    assert!(reason.chars().count() < 400, "{}", reason.len());
    let Outcome::Answered(verdicts) = canned("207 Multi-Status", &long).await else { panic!() };
    let Verdict::Retry(reason) = &verdicts[0] else { panic!() };
    assert!(reason.contains("more than 1 MiB") && reason.contains("`max_group`"), "{reason}");
}
