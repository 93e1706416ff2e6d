use super::*;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use std::time::Duration;

const ASKED: Asked<'static> =
    Asked { connection: "main", items: 2, addressed: false, message: false, recognizable: false };

fn reply(status: u16, headers: &[(&'static str, &'static str)], body: &str) -> Reply {
    let pair = |&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
    let headers: HeaderMap = headers.iter().map(pair).collect();
    Reply { status, headers, body: body.as_bytes().to_vec(), cut: false }
}

fn outcome(status: u16, headers: &[(&'static str, &'static str)], body: &str) -> Outcome {
    judge(&reply(status, headers, body), ASKED, SystemTime::UNIX_EPOCH)
}

fn both(verdict: Verdict) -> Outcome {
    Outcome::Answered(vec![verdict.clone(), verdict])
}

fn throttled(seconds: Option<u64>, reason: &str) -> Outcome {
    let retry_after = seconds.map(Duration::from_secs);
    Outcome::Throttled { retry_after, reason: reason.to_owned() }
}

#[test]
fn a_status_says_what_became_of_the_group() {
    let text = |text: &str| text.to_owned();
    let no = r#"{"error":"no"}"#;
    let cases = [
        (200, both(Verdict::Done)),
        (201, both(Verdict::Done)),
        (204, both(Verdict::Done)),
        (400, Outcome::Refused(text("it answered 400: no"))),
        (409, Outcome::Refused(text("it answered 409: no"))),
        (422, Outcome::Refused(text("it answered 422: no"))),
        (
            401,
            Outcome::Broken(text(
                "the credentials of connection `main` are refused: it answered 401: no",
            )),
        ),
        (404, Outcome::Broken(text("there is nothing at this address: it answered 404: no"))),
        (405, Outcome::Broken(text("it answered 405: no"))),
        (410, Outcome::Gone(text("the receiver is gone for good (410): no"))),
        (415, Outcome::Broken(text("it answered 415: no"))),
        (408, Outcome::Unavailable(text("it answered 408: no"))),
        (413, Outcome::TooLarge(text("it answered 413: no"))),
        (429, throttled(None, "it answered 429: no")),
        (500, both(Verdict::Retry(text("it answered 500: no")))),
        (501, both(Verdict::Retry(text("it answered 501: no")))),
        (502, Outcome::Unavailable(text("it answered 502: no"))),
        (503, Outcome::Unavailable(text("it answered 503: no"))),
        (504, Outcome::TimedOut),
    ];
    for (status, expected) in cases {
        assert_eq!(outcome(status, &[], no), expected, "{status}");
    }
}

#[test]
fn a_throttle_says_when_to_come_again() {
    let seconds = [("retry-after", "7")];
    assert_eq!(outcome(429, &seconds, ""), throttled(Some(7), "it answered 429"));
    assert_eq!(outcome(503, &seconds, ""), throttled(Some(7), "it answered 503"));
    let date = [("retry-after", "Thu, 01 Jan 1970 00:00:09 GMT")];
    assert_eq!(outcome(429, &date, ""), throttled(Some(9), "it answered 429"));
    assert_eq!(outcome(403, &seconds, ""), throttled(Some(7), "it answered 403"));
    let nonsense = [("retry-after", "later")];
    assert_eq!(outcome(503, &nonsense, ""), Outcome::Unavailable("it answered 503".to_owned()));
}

#[test]
fn a_redirect_is_named_and_not_followed() {
    let location = [("location", "https://elsewhere/x?token=secret")];
    let expected =
        "it answered 307 to https://elsewhere/x: redirects are not followed, use that address";
    assert_eq!(outcome(307, &location, ""), Outcome::Broken(expected.to_owned()));
}

#[test]
fn each_item_may_have_its_own_answer() {
    let verdicts = |status: u16, error: &str| {
        let body =
            format!(r#"{{"results":[{{"status":200}},{{"status":{status},"error":{error}}}]}}"#);
        match outcome(207, &[("retry-after", "7")], &body) {
            Outcome::Answered(verdicts) => verdicts,
            other => panic!("{other:?}"),
        }
    };
    let text = |text: &str| text.to_owned();
    let cases = [
        (201, "null", Verdict::Done),
        (422, "\"bad\"", Verdict::Dead(text("it answered 422: bad"))),
        (400, "{\"message\":\"bad\"}", Verdict::Dead(text("it answered 400: bad"))),
        (400, "{\"code\":7}", Verdict::Dead(text("it answered 400: {\"code\":7}"))),
        (302, "null", Verdict::Dead(text("it answered 302"))),
        (408, "null", Verdict::Retry(text("it answered 408"))),
        (425, "null", Verdict::Retry(text("it answered 425"))),
        (429, "\"slow\"", Verdict::Throttled { retry_after: Some(Duration::from_secs(7)) }),
        (500, "null", Verdict::Retry(text("it answered 500"))),
        (503, "null", Verdict::Retry(text("it answered 503"))),
    ];
    for (status, error, expected) in cases {
        assert_eq!(verdicts(status, error), [Verdict::Done, expected], "{status}");
    }
}

#[test]
fn nothing_is_done_that_the_answer_does_not_say() {
    let retried = |status, body| {
        let Outcome::Answered(verdicts) = outcome(status, &[], body) else { panic!() };
        verdicts.iter().all(|verdict| matches!(verdict, Verdict::Retry(_)))
    };
    assert!(retried(207, r#"{"results":[{"status":200}]}"#), "one result for two items");
    assert!(retried(200, r#"{"results":[{"status":200}]}"#));
    assert!(retried(207, "so so"));
    assert!(retried(207, r#"{"results":[{"state":"ok"},{"state":"ok"}]}"#));
    let mixed = outcome(200, &[], r#"{"results":[{"status":200},{"status":"failed"}]}"#);
    let unknown = Verdict::Retry("it did not say what became of this item".to_owned());
    assert_eq!(mixed, Outcome::Answered(vec![Verdict::Done, unknown]));
    // Of a list that is about something else, nothing follows.
    assert_eq!(outcome(200, &[], r#"{"results":["a"]}"#), both(Verdict::Done));
}

#[test]
fn an_item_with_an_address_of_its_own_is_the_one_not_found() {
    let one = Asked { items: 1, addressed: true, recognizable: true, ..ASKED };
    for status in [404, 410] {
        let outcome = judge(&reply(status, &[], ""), one, SystemTime::UNIX_EPOCH);
        assert_eq!(outcome, Outcome::Refused(format!("it answered {status}")));
    }
    let conflict = judge(&reply(409, &[], ""), one, SystemTime::UNIX_EPOCH);
    assert_eq!(conflict, Outcome::Answered(vec![Verdict::Retry("it answered 409".to_owned())]));
}

#[test]
fn a_receiver_of_messages_may_be_gone() {
    let one = Asked { items: 1, addressed: true, message: true, ..ASKED };
    let judged = |status| judge(&reply(status, &[], ""), one, SystemTime::UNIX_EPOCH);
    let reason = "the receiver is gone for good (410)".to_owned();
    assert_eq!(judged(410), Outcome::Refused(reason.clone()), "others are elsewhere");
    let only = Asked { addressed: false, ..one };
    let outcome = judge(&reply(410, &[], ""), only, SystemTime::UNIX_EPOCH);
    assert_eq!(outcome, Outcome::Gone(reason));
    assert_eq!(judged(404), Outcome::Refused("it answered 404".to_owned()));
    let taken = reply(207, &[], r#"{"results":[]}"#);
    let outcome = judge(&taken, one, SystemTime::UNIX_EPOCH);
    assert_eq!(outcome, Outcome::Answered(vec![Verdict::Done]));
}
