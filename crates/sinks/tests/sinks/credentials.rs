//! Who sends.

use crate::support::{deliver, deliver_over, done, http, start, try_http};
use tidegate_core::{Sink, sink::Outcome};
use tidegate_drill::{Concurrency, Spec};

fn guarded() -> Spec {
    let authorization =
        vec!["Bearer value of SECRET_A".to_owned(), "Bearer value of SECRET_B".to_owned()];
    Spec { authorization, ..Spec::default() }
}

const TWO: &str = "connections = [{ name = 'a', bearer = { env = 'SECRET_A' } },\n\
                   { name = 'b', bearer = { env = 'SECRET_B' } }]";

#[tokio::test]
async fn credentials_open_the_door() {
    let service = start(guarded());
    let sink = http(&format!("{}/records", service.url()), "bearer = { env = 'SECRET_A' }");
    assert_eq!(deliver(&sink, &["{}"]).await.outcome, done(1));
}

#[tokio::test]
async fn wrong_credentials_break_the_sink_and_do_not_show() {
    let service = start(guarded());
    for rest in ["bearer = { env = 'SECRET_WRONG' }", ""] {
        let sink = http(&format!("{}/records", service.url()), rest);
        let Outcome::Broken(reason) = deliver(&sink, &["{}"]).await.outcome else { panic!() };
        assert!(reason.starts_with("the credentials of connection `main` are refused"), "{reason}");
        assert!(!reason.contains("value of"), "{reason}");
        assert!(!format!("{sink:?}").contains("value of"));
    }
    assert_eq!(service.counters().unauthorized, 2);
}

#[test]
fn missing_credentials_are_named() {
    let refused = |rest: &str| try_http("https://example.com/", rest).unwrap_err();
    assert_eq!(refused("bearer = { env = 'TOKEN' }"), "`bearer` needs the variable TOKEN: set it");
    let basic = "basic = { user = 'u', password = { file = '/nowhere/word' } }";
    let error = refused(basic);
    assert!(error.starts_with("`basic.password` cannot be read from /nowhere/word"), "{error}");
    let nested = "connections = [{ name = 'a', bearer = { env = 'TOKEN' } }]";
    assert_eq!(refused(nested), "`connections.a.bearer` needs the variable TOKEN: set it");
    let both = format!("bearer = {{ env = 'SECRET_A' }}\n{TWO}");
    assert!(refused(&both).starts_with("`connections` have credentials of their own"));
    assert!(refused("bearer = 'abc'").starts_with("`bearer` holds a secret itself"));
    let userinfo = try_http("https://me:hunter2@example.com/", "").unwrap_err();
    assert!(userinfo.contains("basic credentials") && !userinfo.contains("hunter2"), "{userinfo}");
}

#[tokio::test]
async fn each_connection_has_its_own_credential() {
    let service = start(Spec { concurrency: Some(Concurrency { limit: 1 }), ..guarded() });
    let sink = http(&format!("{}/records", service.url()), TWO);
    assert_eq!(sink.capabilities().connections, ["a", "b"]);
    for connection in [0, 1] {
        assert_eq!(deliver_over(&sink, connection, &["{}"]).await.outcome, done(1));
    }
    let outcome = deliver_over(&sink, 2, &["{}"]).await.outcome;
    assert_eq!(outcome, Outcome::Broken("there is no connection 2".to_owned()));
}
