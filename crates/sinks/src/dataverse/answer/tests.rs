use super::*;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::json;
use std::time::Duration;

const CREATE: Asked<'static> =
    Asked { user: "app", items: 3, message: Message::Write("CreateMultiple") };

fn reply(status: u16, headers: &[(&'static str, &'static str)], body: &str) -> Reply {
    let pair = |&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
    let headers: HeaderMap = headers.iter().map(pair).collect();
    Reply { status, headers, body: body.as_bytes().to_vec(), cut: false }
}

fn error(code: &str) -> String {
    json!({ "error": { "code": code, "message": "no" } }).to_string()
}

fn outcome(status: u16, body: &str) -> Outcome {
    judge(&reply(status, &[], body), CREATE, SystemTime::UNIX_EPOCH)
}

fn all_three(verdict: Verdict) -> Outcome {
    Outcome::Answered(vec![verdict; 3])
}

#[test]
fn a_status_and_a_code_say_what_became_of_the_group() {
    let text = |text: &str| text.to_owned();
    let retry = |text: &str| all_three(Verdict::Retry(text.to_owned()));
    let cases = [
        (200, "", all_three(Verdict::Done)),
        (204, "", all_three(Verdict::Done)),
        (400, "0x80040237", Outcome::Refused(text("it answered 400: no (0x80040237)"))),
        (412, "0x80060892", Outcome::Refused(text("it answered 412: no (0x80060892)"))),
        (404, "0x80040217", Outcome::Refused(text("it answered 404: no (0x80040217)"))),
        (
            404,
            "0x8006088a",
            Outcome::Broken(text("check `url` and `table`: it answered 404: no (0x8006088a)")),
        ),
        (
            403,
            "0x80040220",
            Outcome::Broken(text(
                "the credentials of connection `app` are refused: it answered 403: no",
            )),
        ),
        (
            501,
            "0x80004001",
            Outcome::Broken(text("check `table` and `elastic`: it answered 501: no (0x80004001)")),
        ),
        (400, "0x80044150", retry("it answered 400: no (0x80044150)")),
        (500, "0x80040216", retry("it answered 500: no (0x80040216)")),
        (503, "0x80040216", Outcome::Unavailable(text("it answered 503: no"))),
        (413, "", Outcome::TooLarge(text("it answered 413: no"))),
    ];
    for (status, code, expected) in cases {
        assert_eq!(outcome(status, &error(code)), expected, "{status} {code}");
    }
}

#[test]
fn a_throttle_names_the_limit() {
    let cases = [
        ("0x80072322", "too many requests in the window: no"),
        ("0x80072321", "too much execution time in the window: no"),
        ("0x80072326", "too many concurrent requests: no"),
        ("0x1", "it answered 429: no"),
    ];
    for (code, reason) in cases {
        let reply = reply(429, &[("retry-after", "7")], &error(code));
        let retry_after = Some(Duration::from_secs(7));
        let expected = Outcome::Throttled { retry_after, reason: reason.to_owned() };
        assert_eq!(judge(&reply, CREATE, SystemTime::UNIX_EPOCH), expected);
    }
}

fn partly(details: &str, message: Message) -> Outcome {
    let name = "@Microsoft.PowerApps.CDS.ErrorDetails.Plugin.BulkApiErrorDetails";
    let body = json!({ "error": { "code": "0x1", "message": "no", name: details } }).to_string();
    judge(&reply(400, &[], &body), Asked { message, ..CREATE }, SystemTime::UNIX_EPOCH)
}

#[test]
fn details_tell_which_records_failed() {
    let details = r#"[{"RequestIndex":2,"Id":"x","StatusCode":201},
        {"RequestIndex":0,"StatusCode":400},{"RequestIndex":9,"StatusCode":201}]"#;
    let dead = Verdict::Dead("it answered 400: no".to_owned());
    let unknown = Verdict::Retry("it did not say what became of this record".to_owned());
    let expected = Outcome::Answered(vec![dead, unknown, Verdict::Done]);
    assert_eq!(partly(details, CREATE.message), expected);
    let throttled = r#"[{"RequestIndex":0,"StatusCode":429},{"RequestIndex":1,"StatusCode":404},
        {"RequestIndex":2,"StatusCode":204}]"#;
    let slow = Verdict::Throttled { retry_after: None };
    let expected = Outcome::Answered(vec![slow, Verdict::Done, Verdict::Done]);
    assert_eq!(partly(throttled, Message::DeleteMultiple), expected);
    let Outcome::Answered(verdicts) = partly("?", CREATE.message) else { panic!() };
    assert!(verdicts.iter().all(|verdict| matches!(verdict, Verdict::Retry(_))));
}

#[test]
fn a_batch_answers_each_deletion() {
    let asked = Asked { message: Message::DeleteEach, ..CREATE };
    let kind = [("content-type", "multipart/mixed; boundary=b")];
    let part = |status: &str, body: &str| {
        format!("--b\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 {status}\r\n\r\n{body}\r\n")
    };
    let two = part("204 No Content", "") + &part("404 Not Found", &error("0x80040217"));
    let body = format!("{two}{}--b--", part("404 Not Found", &error("0x8006088a")));
    let dead = Verdict::Dead("it answered 404: no".to_owned());
    let expected = Outcome::Answered(vec![Verdict::Done, Verdict::Done, dead]);
    assert_eq!(judge(&reply(200, &kind, &body), asked, SystemTime::UNIX_EPOCH), expected);

    let busy = part("429 Too Many Requests\r\nRetry-After: 7", "") + &part("204 No Content", "");
    let body = format!("{busy}{}--b--", part("204 No Content", ""));
    let slow = Verdict::Throttled { retry_after: Some(Duration::from_secs(7)) };
    let expected = Outcome::Answered(vec![slow, Verdict::Done, Verdict::Done]);
    assert_eq!(judge(&reply(200, &kind, &body), asked, SystemTime::UNIX_EPOCH), expected);

    for body in [format!("{two}--b--"), two, String::new()] {
        let outcome = judge(&reply(200, &kind, &body), asked, SystemTime::UNIX_EPOCH);
        let Outcome::Answered(verdicts) = outcome else { panic!() };
        assert!(verdicts.iter().all(|verdict| matches!(verdict, Verdict::Retry(_))));
    }
}
