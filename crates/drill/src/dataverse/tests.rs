use super::{
    Tokens,
    headers::grouped,
    multipart::{self, Part},
    target::{Target, guid},
};
use crate::{spec::Spec, work::key};
use std::time::Duration;

#[test]
fn a_boundary_may_be_quoted() {
    let boundary = multipart::boundary;
    assert_eq!(boundary("multipart/mixed; boundary=\"batch_1\""), Some("batch_1"));
    assert_eq!(boundary("multipart/mixed;boundary=batch_1; charset=utf-8"), Some("batch_1"));
    assert_eq!(boundary("multipart/mixed"), None);
    assert_eq!(boundary("application/json"), None);
}

#[test]
fn a_batch_is_read_with_either_line_ending() {
    let lines = [
        "--b",
        "Content-Type: application/http",
        "",
        "POST /api/data/v9.2/tasks HTTP/1.1",
        "Content-Type: application/json",
        "",
        "{\"subject\":1}",
        "--b",
        "content-type: application/http",
        "",
        "DELETE tasks(7) HTTP/1.1",
        "",
        "--b--",
        "",
    ];
    let post = Part { method: "POST", url: "/api/data/v9.2/tasks", body: "{\"subject\":1}" };
    let delete = Part { method: "DELETE", url: "tasks(7)", body: "" };
    for ending in ["\n", "\r\n"] {
        let body = lines.join(ending);
        let parts = multipart::parts(&body, "b").unwrap();
        assert_eq!(parts, [&post, &delete].map(|part| Part { ..*part }));
    }
    assert!(multipart::parts(&lines[..8].join("\n"), "b").is_err(), "cut off");
}

#[test]
fn tokens_expire() {
    let (at, lifetime) = (Duration::from_secs, Duration::from_secs(10));
    let mut tokens = Tokens::default();
    let first = tokens.issue("app", lifetime, at(0));
    let second = tokens.issue("app", lifetime, at(5));
    assert_ne!(first, second);
    assert_eq!(tokens.user(&first, at(9)).as_deref(), Some("app"));
    assert_eq!(tokens.user(&first, at(10)), None);
    assert_eq!(tokens.user(&second, at(10)).as_deref(), Some("app"));
    assert_eq!(tokens.user("other", at(0)), None);
}

#[test]
fn a_record_is_recognized_by_its_id_then_its_primary_key_then_its_text() {
    let target = |text: &str| Target::of_bulk(&Spec::default(), text).unwrap();
    let typed = r#""@odata.type":"Microsoft.Dynamics.CRM.account""#;
    let by_id = target(&format!(r#"{{{typed},"id":5,"accountid":"x"}}"#));
    assert_eq!((by_id.write.key, by_id.id.as_str()), (key("5"), "x"));
    let by_primary_key = target(&format!(r#"{{{typed},"accountid":"x"}}"#));
    assert_eq!(by_primary_key.write.key, key("x"));
    let text = format!("{{{typed}}}");
    let by_text = target(&text);
    assert_eq!((by_text.write.key, by_text.id), (key(&text), guid(key(&text))));
    assert!(Target::of_bulk(&Spec::default(), r#"{"accountid":"x"}"#).is_err());
}

#[test]
fn seconds_left_are_grouped_by_thousands() {
    assert_eq!(grouped(Duration::from_secs(1200)), "1,200.00");
    assert_eq!(grouped(Duration::from_millis(1_001_037)), "1,001.03");
    assert_eq!(grouped(Duration::from_millis(999)), "0.99");
    assert_eq!(guid(1), "00000000-0000-0000-0000-000000000001");
}
