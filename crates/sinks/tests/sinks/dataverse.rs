//! Dataverse's answers, table by table.

use crate::support::{deliver, deliver_over, done, env, start};
use serde_json::json;
use std::time::Duration;
use tidegate_core::{
    Sink,
    sink::{Budget, BudgetKind, Outcome, Verdict},
};
use tidegate_drill::{Concurrency, Service, Spec};
use tidegate_sinks::dataverse::Dataverse;

const CREATE: &str = "operation = 'create'";
const DELETE: &str = "operation = 'delete'\nkey = 'accountid'";

pub fn sink(service: &Service, rest: &str) -> Dataverse {
    let user = |name| {
        format!(
            "{{ name = '{name}', client_id = '{name}', client_secret = {{ env = 'SECRET_{name}' }} }}"
        )
    };
    try_sink(service, &format!("users = [{}, {}]\n{rest}", user("a"), user("b"))).unwrap()
}

pub fn try_sink(service: &Service, rest: &str) -> Result<Dataverse, String> {
    let url = service.url();
    let config = format!(
        "url = '{url}'\ntable = 'accounts'\nentity = 'account'\ntenant = 't'\n\
         token_url = '{url}/oauth/t/oauth2/v2.0/token'\nallow = ['127.0.0.1']\n{rest}"
    );
    let config = toml::from_str(&config).map_err(|error| error.to_string())?;
    Dataverse::new(&config, &env).map_err(|error| error.to_string())
}

/// What the users' secrets open.
pub fn guarded() -> Spec {
    let user = |name: &str| (name.to_owned(), format!("value of SECRET_{name}"));
    let mut spec = Spec::default();
    spec.dataverse.users = [user("a"), user("b")].into();
    spec
}

fn elastic() -> Spec {
    let mut spec = guarded();
    spec.dataverse.elastic = true;
    spec
}

fn account(number: u32, bad: bool) -> String {
    let id = format!("00000000-0000-0000-0000-{number:012}");
    json!({ "accountid": id, "name": format!("n{number}"), "bad": bad }).to_string()
}

/// Three, of which the second may be bad.
fn accounts(bad: bool) -> [String; 3] {
    [account(1, false), account(2, bad), account(3, false)]
}

async fn outcome(sink: &Dataverse, records: &[String]) -> Outcome {
    let records: Vec<_> = records.iter().map(String::as_str).collect();
    deliver(sink, &records).await.outcome
}

#[tokio::test]
async fn records_are_written_to_standard_tables() {
    let service = start(guarded());
    for rest in [
        CREATE,
        "operation = 'update'\nkey = 'accountid'",
        "operation = 'upsert'\nkey = 'accountid'",
        "operation = 'upsert'\nkey = ['name']",
    ] {
        assert_eq!(outcome(&sink(&service, rest), &accounts(false)).await, done(3), "{rest}");
    }
    let seen = service.counters();
    assert_eq!((seen.requests, seen.accepted, seen.records), (4, 4, 3));
    assert_eq!(seen.affinity_cookies, 0);
}

#[tokio::test]
async fn a_bad_record_refuses_its_group_in_a_standard_table() {
    let service = start(guarded());
    let Outcome::Refused(reason) = outcome(&sink(&service, CREATE), &accounts(true)).await else {
        panic!()
    };
    assert!(reason.contains("0x80040237"), "{reason}");
    assert_eq!(service.counters().records, 0);
}

#[tokio::test]
async fn a_bad_record_stands_alone_in_an_elastic_table() {
    let service = start(elastic());
    let sink = sink(&service, &format!("elastic = true\n{CREATE}"));
    let Outcome::Answered(verdicts) = outcome(&sink, &accounts(true)).await else { panic!() };
    assert_eq!((&verdicts[0], &verdicts[2]), (&Verdict::Done, &Verdict::Done));
    assert!(
        matches!(&verdicts[1], Verdict::Dead(reason) if reason.contains("400")),
        "{verdicts:?}"
    );
    assert_eq!(service.counters().records, 2);
}

#[tokio::test]
async fn records_are_deleted_from_both_kinds_of_tables() {
    let service = start(elastic());
    let bulk = sink(&service, &format!("elastic = true\n{DELETE}"));
    assert_eq!(outcome(&bulk, &accounts(false)).await, done(3));
    assert_eq!(service.counters().records, 3);

    let service = start(guarded());
    let batch = sink(&service, DELETE);
    assert_eq!(outcome(&batch, &accounts(false)).await, done(3));
    let seen = service.counters();
    assert_eq!((seen.records, seen.requests), (3, 1));

    let Outcome::Broken(reason) = outcome(&bulk_at(&service), &accounts(false)).await else {
        panic!()
    };
    assert!(reason.starts_with("check `table` and `elastic`"), "{reason}");
}

/// Believes that a standard table is elastic.
fn bulk_at(service: &Service) -> Dataverse {
    sink(service, &format!("elastic = true\n{DELETE}"))
}

#[tokio::test]
async fn a_record_without_its_key_is_not_sent() {
    let service = start(guarded());
    let outcome = outcome(&sink(&service, DELETE), &["{}".to_owned()]).await;
    assert_eq!(outcome, Outcome::Refused("field `accountid` is missing".to_owned()));
    assert_eq!(service.counters().requests, 0);
}

#[tokio::test]
async fn a_throttle_names_its_limit_and_its_end() {
    let window = Duration::from_secs(300);
    let kind = tidegate_drill::BudgetKind::Requests;
    let service = start(Spec {
        budgets: vec![tidegate_drill::Budget { kind, limit: 1.0, window }],
        hint: Some(tidegate_drill::Hint { parallelism: 4 }),
        ..guarded()
    });
    let sink = sink(&service, CREATE);
    let first = deliver(&sink, &["{}"]).await;
    assert_eq!((first.outcome, first.hint.parallelism), (done(1), Some(4)));
    assert_eq!(first.hint.remaining, None, "what is left on one web server is no quota");
    let second = deliver(&sink, &["{}"]).await;
    let Outcome::Throttled { retry_after, reason } = second.outcome else { panic!() };
    assert!(reason.starts_with("too many requests in the window: "), "{reason}");
    assert!(retry_after.unwrap() > Duration::from_secs(290), "{retry_after:?}");
    assert_eq!(second.hint.parallelism, Some(4));
}

#[tokio::test]
async fn users_have_limits_of_their_own() {
    let service = start(Spec { concurrency: Some(Concurrency { limit: 1 }), ..guarded() });
    let sink = sink(&service, CREATE);
    sink.check().await.unwrap();
    for connection in [0, 1, 0] {
        assert_eq!(deliver_over(&sink, connection, &["{}"]).await.outcome, done(1));
    }
    let seen = service.counters();
    assert_eq!((seen.tokens, seen.affinity_cookies, seen.unauthorized), (2, 0, 0));
    assert_eq!(seen.connections, 1);
}

#[tokio::test]
async fn what_dataverse_allows_is_declared() {
    let service = start(Spec::default());
    let capabilities = sink(&service, CREATE).capabilities();
    assert_eq!((capabilities.name, capabilities.max_group), ("dataverse", 100));
    assert_eq!(capabilities.connections, ["a", "b"]);
    assert_eq!(capabilities.operation, "create");
    let window = Duration::from_secs(300);
    let requests = Budget { kind: BudgetKind::Requests, limit: 6000, window };
    assert_eq!((capabilities.budgets[0], capabilities.budgets.len()), (requests, 3));
}

#[tokio::test]
async fn configs_that_cannot_be_are_refused_by_their_key() {
    let service = start(Spec::default());
    let user = "users = [{ name = 'a', client_id = 'a', client_secret = { env = 'NONE' } }]";
    let refused = |rest: &str| try_sink(&service, rest).unwrap_err();
    let missing = "`users.a.client_secret` needs the variable NONE: set it";
    assert_eq!(refused(&format!("{CREATE}\n{user}")), missing);
    assert!(refused(&format!("{CREATE}\nusers = []")).starts_with("`users` are missing"));
    assert!(refused(&format!("{CREATE}\n{user}\nelastik = 1")).contains("unknown field `elastik`"));

    let config = "url = 'http://org.crm.dynamics.com'\ntable = 't'\nentity = 't'\ntenant = 't'";
    let config = toml::from_str(&format!("{config}\n{CREATE}\n{user}")).unwrap();
    let error = Dataverse::new(&config, &|_| Some("s".to_owned())).unwrap_err().to_string();
    assert!(error.starts_with("`url` sends secrets in the clear"), "{error}");
}
