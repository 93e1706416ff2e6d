use super::*;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use std::time::Duration;

const ASKED: Asked<'static> = Asked { collection: "docs", items: 2, operations: 1 };

fn reply(status: u16, headers: &[(&'static str, &'static str)], body: &str) -> Reply {
    let pair = |&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
    let headers: HeaderMap = headers.iter().map(pair).collect();
    Reply { status, headers, body: body.as_bytes().to_vec(), cut: false }
}

fn outcome(status: u16, body: &str) -> Outcome {
    judge(&reply(status, &[], body), ASKED, SystemTime::UNIX_EPOCH)
}

fn error(text: &str) -> String {
    format!(r#"{{"status":{{"error":"{text}"}},"time":0.0001}}"#)
}

fn both(verdict: Verdict) -> Outcome {
    Outcome::Answered(vec![verdict.clone(), verdict])
}

fn applied_as(status: &str) -> Outcome {
    let result = format!(r#"{{"operation_id":1,"status":"{status}"}}"#);
    outcome(200, &format!(r#"{{"result":[{result}],"status":"ok","time":0.1}}"#))
}

#[test]
fn done_is_what_is_completed() {
    assert_eq!(applied_as("completed"), both(Verdict::Done));
    assert_eq!(applied_as("wait_timeout"), Outcome::TimedOut);
    let Outcome::Unavailable(reason) = applied_as("acknowledged") else { panic!() };
    assert_eq!(reason, "it took the points but has not written them yet: `acknowledged`");
}

#[test]
fn nothing_is_done_that_the_answer_does_not_say() {
    for body in ["", "{}", r#"{"result":[],"status":"ok"}"#, r#"{"result":true}"#] {
        let reason = "it did not say what became of 1 operations".to_owned();
        assert_eq!(outcome(200, body), both(Verdict::Retry(reason)), "{body}");
    }
}

#[test]
fn a_missing_collection_is_no_fault_of_the_items() {
    let missing = outcome(404, &error("Not found: Collection `docs` doesn't exist!"));
    let reason = "collection `docs` does not exist: create it, or declare `create`".to_owned();
    assert_eq!(missing, both(Verdict::Retry(reason)));
    for body in ["", "<html>nginx</html>"] {
        let Outcome::Broken(reason) = outcome(404, body) else { panic!() };
        assert!(reason.starts_with("there is no Qdrant at this address"), "{reason}");
    }
}

#[test]
fn a_bad_point_refuses_its_group() {
    let dimension = "Wrong input: Vector dimension error: expected dim: 4, got 3";
    let refused = Outcome::Refused(format!("it answered 400: {dimension}"));
    assert_eq!(outcome(400, &error(dimension)), refused);
    let invalid = "Validation error in JSON body: [operations[0].upsert: value is invalid]";
    let refused = Outcome::Refused(format!("it answered 422: {invalid}"));
    assert_eq!(outcome(422, &error(invalid)), refused);
}

#[test]
fn what_quotes_a_point_is_cut() {
    let text = "Format error in JSON body: invalid type: string 'secret', expected f32 at line 1";
    let refused = Outcome::Refused("it answered 400: Format error in JSON body".to_owned());
    assert_eq!(outcome(400, &error(text)), refused);
}

#[test]
fn what_is_too_large_is_told_apart() {
    let text = "JSON payload (40000000 bytes) is larger than allowed (limit: 33554432 bytes).";
    assert_eq!(outcome(400, &error(text)), Outcome::TooLarge(format!("it answered 400: {text}")));
    let text =
        "Rate limiting exceeded: request larger than capacity, please try to split your request";
    assert_eq!(outcome(429, &error(text)), Outcome::TooLarge(format!("it answered 429: {text}")));
}

#[test]
fn trouble_of_the_server_is_no_fault_of_the_items() {
    let full = "Service internal error: No space left on device: WAL buffer";
    assert!(matches!(outcome(500, &error(full)), Outcome::Unavailable(_)));
    assert!(matches!(outcome(507, &error("disk")), Outcome::Unavailable(_)));
    assert!(matches!(
        outcome(503, &error("Shard temporarily unavailable")),
        Outcome::Unavailable(_)
    ));
    assert_eq!(outcome(408, &error("Timeout")), Outcome::TimedOut);
    let reason = "it answered 500: Service internal error".to_owned();
    assert_eq!(outcome(500, &error("Service internal error")), both(Verdict::Retry(reason)));
    let wait = [("retry-after", "7")];
    let limited = reply(429, &wait, &error("Rate limiting exceeded"));
    let Outcome::Throttled { retry_after, .. } = judge(&limited, ASKED, SystemTime::UNIX_EPOCH)
    else {
        panic!()
    };
    assert_eq!(retry_after, Some(Duration::from_secs(7)));
}

#[test]
fn a_wrong_key_breaks_the_sink() {
    for status in [401, 403] {
        let Outcome::Broken(reason) = outcome(status, "Invalid API key or JWT") else { panic!() };
        assert!(reason.contains("are refused: it answered"), "{reason}");
    }
}
