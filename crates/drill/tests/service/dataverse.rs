use crate::client::{Answer, Client, JSON, LONG, Pair, start};
use serde_json::{Value, json};
use std::time::Duration;
use tidegate_drill::{Budget, BudgetKind, Concurrency, Dataverse, Hint, Spec};

const TOKEN: &str = "/oauth/some-tenant/oauth2/v2.0/token";
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
const CREATE: &str = "/api/data/v9.2/accounts/Microsoft.Dynamics.CRM.CreateMultiple";
const DELETE: &str = "/api/data/v9.2/accounts/Microsoft.Dynamics.CRM.DeleteMultiple";
const DETAILS: &str = "@Microsoft.PowerApps.CDS.ErrorDetails.Plugin.BulkApiErrorDetails";

fn users(token_lifetime: Duration) -> Spec {
    let users = [("app".to_owned(), "se cret".to_owned())].into();
    Spec { dataverse: Dataverse { users, token_lifetime, elastic: false }, ..Spec::default() }
}

fn elastic() -> Spec {
    Spec { dataverse: Dataverse { elastic: true, ..Dataverse::default() }, ..Spec::default() }
}

fn targets(count: usize, bad: Option<usize>) -> String {
    let target = |i| {
        let kind = "Microsoft.Dynamics.CRM.account";
        let id = format!("00000000-0000-0000-0000-{i:012}");
        json!({ "@odata.type": kind, "accountid": id, "bad": Some(i) == bad })
    };
    json!({ "Targets": (0..count).map(target).collect::<Vec<_>>() }).to_string()
}

async fn token(client: &Client, secret: &str) -> Answer {
    let form = format!(
        "grant_type=client_credentials&client_id=app&client_secret={secret}&scope=https%3A%2F%2Fx%2F.default"
    );
    client.send("POST", TOKEN, &[FORM], &form).await
}

async fn who_am_i(it: &Pair, bearer: &str) -> u16 {
    let headers = [("authorization", bearer)];
    it.client.send("GET", "/api/data/v9.2/WhoAmI", &headers, "").await.status
}

#[tokio::test]
async fn a_token_opens_the_door_for_its_lifetime() {
    let it = start(users(LONG));
    let answer = token(&it.client, "se+cret").await;
    let body = answer.json();
    assert_eq!((answer.status, &body["expires_in"]), (200, &json!(60)));
    assert_eq!(body["token_type"], "Bearer");
    let bearer = format!("Bearer {}", body["access_token"].as_str().unwrap());
    assert_eq!(who_am_i(&it, &bearer).await, 200);
    assert_eq!(who_am_i(&it, "Bearer other").await, 401);
    assert_eq!(it.client.json(CREATE, &targets(1, None)).await.status, 401);
    let seen = it.service.counters();
    assert_eq!((seen.tokens, seen.requests, seen.unauthorized), (1, 3, 2));

    let it = start(users(Duration::ZERO));
    let body = token(&it.client, "se+cret").await.json();
    let bearer = format!("Bearer {}", body["access_token"].as_str().unwrap());
    assert_eq!(who_am_i(&it, &bearer).await, 401, "expired");
}

#[tokio::test]
async fn wrong_credentials_get_no_token() {
    let it = start(users(LONG));
    let wrong = token(&it.client, "wrong").await;
    assert_eq!((wrong.status, &wrong.json()["error"]), (401, &json!("invalid_client")));
    let form = "grant_type=password&client_id=app";
    let grant = it.client.send("POST", TOKEN, &[FORM], form).await;
    assert_eq!((grant.status, &grant.json()["error"]), (400, &json!("unsupported_grant_type")));
    assert_eq!(it.client.json(TOKEN, "{}").await.status, 400);
    assert_eq!(it.service.counters().tokens, 0);
}

#[tokio::test]
async fn a_users_tokens_share_its_limits() {
    let limited = Spec { concurrency: Some(Concurrency { limit: 1 }), delay: LONG, ..users(LONG) };
    let it = start(limited);
    let mut bearers = Vec::new();
    for _ in 0..2 {
        let body = token(&it.client, "se+cret").await.json();
        bearers.push(format!("Bearer {}", body["access_token"].as_str().unwrap()));
    }
    let (client, first) = (it.client.clone(), bearers[0].clone());
    tokio::spawn(async move {
        let headers = [("authorization", first.as_str())];
        client.send("GET", "/api/data/v9.2/WhoAmI", &headers, "").await
    });
    it.until(|seen| seen.in_flight == 1).await;
    assert_eq!(who_am_i(&it, &bearers[1]).await, 429);
}

#[tokio::test]
async fn creating_many_answers_their_ids() {
    let it = start(Spec::default());
    let answer = it.client.json(CREATE, &targets(2, None)).await;
    assert_eq!(answer.status, 200);
    let ids = ["00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000001"];
    assert_eq!(answer.json()["Ids"], json!(ids));
    assert_eq!(answer.header("odata-version"), Some("4.0"));
    for message in ["UpdateMultiple", "UpsertMultiple"] {
        let path = CREATE.replace("CreateMultiple", message);
        assert_eq!(it.client.json(&path, &targets(2, None)).await.pair(), (204, ""));
    }
    let seen = it.service.counters();
    assert_eq!((seen.records, seen.duplicates, seen.accepted), (2, 4, 3));
}

#[tokio::test]
async fn in_a_standard_table_one_bad_record_fails_all() {
    let it = start(Spec::default());
    let answer = it.client.json(CREATE, &targets(3, Some(1))).await;
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (400, &json!("0x80040237")));
    assert_eq!(it.service.counters().records, 0);
    let missing = it.client.json(DELETE, &targets(1, None)).await;
    let message = "DeleteMultiple has not yet been implemented.";
    assert_eq!((missing.status, &missing.json()["error"]["message"]), (501, &json!(message)));
}

#[tokio::test]
async fn in_an_elastic_table_the_good_ones_are_stored_and_details_tell_which() {
    let it = start(elastic());
    let prefer = ("prefer", "odata.include-annotations=\"*\"");
    let answer = it.client.send("POST", CREATE, &[JSON, prefer], &targets(3, Some(1))).await;
    assert_eq!(answer.status, 400);
    let error = answer.json()["error"].clone();
    let details: Value = serde_json::from_str(error[DETAILS].as_str().unwrap()).unwrap();
    let statuses: Vec<_> = (0..3).map(|i| details[i]["StatusCode"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [201, 400, 201]);
    assert_eq!(details[1]["RequestIndex"], 1);
    assert_eq!(details[2]["Id"], "00000000-0000-0000-0000-000000000002");
    let seen = it.service.counters();
    assert_eq!((seen.records, seen.refused_records, seen.refused), (2, 1, 1));
    let plain = it.client.json(CREATE, &targets(3, Some(1))).await;
    assert_eq!(plain.json()["error"].get(DETAILS), None, "not asked for");
    assert_eq!(it.client.json(DELETE, &targets(3, None)).await.status, 204);
    assert_eq!(it.service.counters().records, 5);
}

#[tokio::test]
async fn what_dataverse_would_not_understand_is_refused() {
    let it = start(elastic());
    let untyped = r#"{"Targets":[{"accountid":"1"}]}"#;
    for body in [untyped, r#"{"Targets":[]}"#, "{}", "[", r#"{"Targets":[1]}"#] {
        let answer = it.client.json(CREATE, body).await;
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (400, &json!("0x80048d19")));
    }
    let unknown = it.client.json(&CREATE.replace("Create", "Guess"), &targets(1, None)).await;
    assert_eq!(unknown.status, 404);
    assert_eq!(it.service.counters().records, 0);
}

#[tokio::test]
async fn each_limit_has_its_code_and_says_when_to_come_again() {
    let window = Duration::from_secs(300);
    let requests = Budget { kind: BudgetKind::Requests, limit: 1.0, window };
    let execution = Budget { kind: BudgetKind::ExecutionSeconds, limit: 1200.0, window };
    let hint = Some(Hint { parallelism: 10 });
    let it = start(Spec { budgets: vec![requests, execution], hint, ..Spec::default() });
    let first = it.client.json(CREATE, &targets(1, None)).await;
    assert_eq!(first.header("x-ms-dop-hint"), Some("10"));
    assert_eq!(first.header("x-ms-ratelimit-burst-remaining-xrm-requests"), Some("0"));
    assert_eq!(first.header("x-ms-ratelimit-time-remaining-xrm-requests"), Some("1,200.00"));
    let rejected = it.client.json(CREATE, &targets(1, None)).await;
    assert_eq!((rejected.status, rejected.header("retry-after")), (429, Some("300")));
    let message = "Number of requests exceeded the limit of 1 over time window of 300 seconds.";
    let error = json!({ "error": { "code": "0x80072322", "message": message } });
    assert_eq!(rejected.json(), error);
    assert_eq!(rejected.header("x-ms-dop-hint"), Some("10"));

    let (delay, limit) = (Duration::from_millis(10), 0.005);
    let short = Budget { limit, ..execution };
    let it = start(Spec { delay, budgets: vec![short], ..Spec::default() });
    it.client.json(CREATE, &targets(1, None)).await;
    let rejected = it.client.json(CREATE, &targets(1, None)).await;
    assert_eq!(rejected.json()["error"]["code"], "0x80072321");
}

#[tokio::test]
async fn affinity_cookies_are_counted() {
    let it = start(Spec::default());
    let answer = it.client.json(CREATE, &targets(1, None)).await;
    let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    assert!(cookie.starts_with("ARRAffinity="), "{cookie}");
    let headers = [JSON, ("cookie", cookie.as_str())];
    it.client.send("POST", CREATE, &headers, &targets(1, None)).await;
    assert_eq!(it.service.counters().affinity_cookies, 1);
}

#[tokio::test]
async fn single_writes_answer_where_the_record_is() {
    let it = start(Spec::default());
    let path = "/api/data/v9.2/accounts(00000000-0000-0000-0000-000000000001)";
    let patch = it.client.send("PATCH", path, &[JSON], "{\"name\":\"x\"}").await;
    let place = format!("{}{path}", it.service.url());
    assert_eq!((patch.status, patch.header("odata-entityid")), (204, Some(place.as_str())));
    assert_eq!(it.client.json("/api/data/v9.2/accounts", "{\"name\":\"x\"}").await.status, 204);
    assert_eq!(it.client.send("DELETE", path, &[], "").await.status, 204);
    assert_eq!(it.client.json("/api/data/v9.2/accounts", "{\"bad\":true}").await.status, 400);
    assert_eq!(it.service.counters().records, 3);
}
