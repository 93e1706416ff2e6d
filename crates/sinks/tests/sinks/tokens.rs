//! Tokens: kept, renewed, replaced.

use crate::{
    dataverse::{guarded, sink, try_sink},
    support::{deliver, done, start},
};
use std::time::Duration;
use tidegate_core::{Sink, sink::Outcome};
use tidegate_drill::{Service, Spec};

const CREATE: &str = "operation = 'create'";

/// Tokens of this lifetime.
fn tokens_of(lifetime: Duration) -> Spec {
    let mut spec = guarded();
    spec.dataverse.token_lifetime = lifetime;
    spec
}

#[tokio::test]
async fn a_token_is_used_as_long_as_it_is_good() {
    let service = start(guarded());
    let sink = sink(&service, CREATE);
    let (first, second) = tokio::join!(deliver(&sink, &["{}"]), deliver(&sink, &["{}"]));
    assert_eq!((first.outcome, second.outcome), (done(1), done(1)));
    assert_eq!(deliver(&sink, &["{}"]).await.outcome, done(1));
    assert_eq!(service.counters().tokens, 1, "those who start together share one, too");
}

#[tokio::test]
async fn an_expired_token_is_renewed_before_it_is_refused() {
    // In whole seconds that is none, so that each is expired for us and still good for the service.
    let service = start(tokens_of(Duration::from_millis(999)));
    let sink = sink(&service, CREATE);
    for _ in 0..3 {
        assert_eq!(deliver(&sink, &["{}"]).await.outcome, done(1));
    }
    let seen = service.counters();
    assert_eq!((seen.tokens, seen.unauthorized), (3, 0));
}

#[tokio::test]
async fn a_withdrawn_token_costs_one_attempt() {
    let service = start(guarded());
    let (sink, addr) = (sink(&service, CREATE), service.addr());
    assert_eq!(deliver(&sink, &["{}"]).await.outcome, done(1));
    // Started again, the service knows no tokens.
    service.stop().await;
    let service = Service::start(guarded(), addr).unwrap();
    let Outcome::Unavailable(reason) = deliver(&sink, &["{}"]).await.outcome else { panic!() };
    assert!(reason.starts_with("the token of user `a` is refused"), "{reason}");
    assert_eq!(deliver(&sink, &["{}"]).await.outcome, done(1));
    assert_eq!((service.counters().tokens, service.counters().unauthorized), (1, 1));
}

#[tokio::test]
async fn tokens_that_never_work_break_the_sink() {
    let service = start(tokens_of(Duration::ZERO));
    let sink = sink(&service, CREATE);
    let first = deliver(&sink, &["{}"]).await.outcome;
    assert!(matches!(first, Outcome::Unavailable(_)), "{first:?}");
    let Outcome::Broken(reason) = deliver(&sink, &["{}"]).await.outcome else { panic!() };
    assert!(reason.starts_with("user `a` is refused, with a new token as well"), "{reason}");
}

#[tokio::test]
async fn a_wrong_secret_breaks_the_sink_and_does_not_show() {
    let service = start(guarded());
    let user = "users = [{ name = 'app', client_id = 'a', client_secret = { env = 'SECRET_x' } }]";
    let sink = try_sink(&service, &format!("{CREATE}\n{user}")).unwrap();
    let Outcome::Broken(reason) = deliver(&sink, &["{}"]).await.outcome else { panic!() };
    let expected =
        "the client id or secret of user `app` is refused: it answered 401: AADSTS7000215";
    assert!(reason.starts_with(expected), "{reason}");
    let error = sink.check().await.unwrap_err().to_string();
    assert!(error.starts_with(expected), "{error}");
    assert!(!format!("{reason} {error} {sink:?}").contains("value of"));
    assert_eq!(service.counters().requests, 0);
}

#[tokio::test]
async fn an_issuer_that_is_not_there_is_unavailable() {
    let (service, issuer) = (start(guarded()), start(guarded()));
    let user = "users = [{ name = 'a', client_id = 'a', client_secret = { env = 'SECRET_a' } }]";
    let url = service.url();
    let config = format!(
        "url = '{url}'\ntable = 'accounts'\nentity = 'account'\ntenant = 't'\n\
         token_url = '{}/token'\nallow = ['127.0.0.1']\n{CREATE}\n{user}",
        issuer.url()
    );
    issuer.stop().await;
    let config = toml::from_str(&config).unwrap();
    let sink = tidegate_sinks::dataverse::Dataverse::new(&config, &crate::support::env).unwrap();
    let outcome = deliver(&sink, &["{}"]).await.outcome;
    assert!(matches!(outcome, Outcome::Unavailable(_)), "{outcome:?}");
    assert_eq!(service.counters().requests, 0);
}
