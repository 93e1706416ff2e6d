//! Qdrant: the stand-in always, and a real server when there is one.

mod server;
mod stand_in;

use crate::{
    canned::Canned,
    support::{done, env},
};
use serde_json::json;
use server::{Server, new_name, servers};
use stand_in::StandIn;
use tidegate_core::{
    Headers, Sink,
    sink::{Answer, Delivery, Item, Outcome, Verdict},
};
use tidegate_sinks::qdrant::Qdrant;

const UUID: &str = "550e8400-e29b-41d4-a716-446655440000";

/// A sink to this address, wherever it is.
fn sink(url: &str, rest: &str) -> Qdrant {
    let host = url::Url::parse(url).unwrap().host_str().unwrap().to_owned();
    try_sink(url, &format!("allow = ['{host}']\n{rest}")).unwrap()
}

fn try_sink(url: &str, rest: &str) -> Result<Qdrant, String> {
    let config = toml::from_str(&format!("url = '{url}'\n{rest}")).map_err(|it| it.to_string())?;
    Qdrant::new(&config, &env).map_err(|error| error.to_string())
}

/// What an item needs: operation, key and payload.
type Wanted<'a> = (&'a str, Option<&'a str>, &'a str);

async fn deliver(sink: &Qdrant, topic: &str, wanted: &[Wanted<'_>]) -> Answer {
    let headers: Vec<Headers> = wanted
        .iter()
        .map(|(operation, ..)| Headers::from_iter([("operation", *operation)]))
        .collect();
    let ids: Vec<String> = (0..wanted.len()).map(|at| format!("message-{at}")).collect();
    let item = |at: usize| {
        let (_, key, payload) = wanted[at];
        Item { topic, key, headers: &headers[at], ..Item::record(&ids[at], payload) }
    };
    let items: Vec<_> = (0..wanted.len()).map(item).collect();
    sink.deliver(Delivery { connection: 0, items: &items }).await
}

async fn each<F: AsyncFn(&Server)>(test: F) {
    for server in servers().await {
        eprintln!("against {}", server.name);
        test(&server).await;
    }
}

#[tokio::test]
async fn points_are_written_and_what_comes_again_changes_nothing() {
    each(async |server| {
        let docs = server.collection("docs", 2).await;
        let sink = sink(&server.url, "");
        let payload = format!(r#"{{"id":"{UUID}","vector":[1,2.5],"payload":{{"name":"b"}}}}"#);
        let wanted = [
            ("INSERT", Some("a"), r#"{"id":7,"vector":[0.5,1],"name":"a"}"#),
            ("Update", Some("b"), payload.as_str()),
            ("insert", Some("repo/entity"), r#"{"vector":[1,1]}"#),
        ];
        for _ in 0..2 {
            assert_eq!(deliver(&sink, &docs, &wanted).await.outcome, done(3));
        }
        assert_eq!(server.count(&docs).await, 3);
        let found = server.points(&docs, json!([7])).await;
        assert_eq!(found, [json!({ "id": 7, "vector": [0.5, 1.0], "payload": { "name": "a" } })]);
        let found = server.points(&docs, json!([UUID])).await;
        assert_eq!(found[0]["payload"], json!({ "name": "b" }));
        server.remove(&docs).await;
    })
    .await;
}

#[tokio::test]
async fn the_last_write_to_an_entity_wins() {
    each(async |server| {
        let docs = server.collection("order", 1).await;
        let sink = sink(&server.url, "");
        let wanted = [
            ("INSERT", Some("1"), r#"{"vector":[1],"n":1}"#),
            ("INSERT", Some("2"), r#"{"vector":[1],"n":1}"#),
            ("UPDATE", Some("1"), r#"{"vector":[2],"m":2}"#),
            ("DELETE", Some("2"), ""),
            ("INSERT", Some("3"), r#"{"vector":[1],"n":1}"#),
            ("DELETE", Some("1"), "null"),
            ("INSERT", Some("1"), r#"{"vector":[3],"o":3}"#),
            ("DELETE", Some("never there"), "{}"),
        ];
        assert_eq!(deliver(&sink, &docs, &wanted).await.outcome, done(8));
        let found = server.points(&docs, json!([1, 2, 3])).await;
        let point = |id: u64, vector: f64, payload: serde_json::Value| json!({ "id": id, "vector": [vector], "payload": payload });
        let expected = [point(1, 3.0, json!({ "o": 3 })), point(3, 1.0, json!({ "n": 1 }))];
        assert_eq!(found, expected);
        server.remove(&docs).await;
    })
    .await;
}

#[tokio::test]
async fn a_write_replaces_the_whole_point() {
    each(async |server| {
        let docs = server.collection("whole", 1).await;
        let sink = sink(&server.url, "");
        for payload in [r#"{"vector":[1],"old":1}"#, r#"{"vector":[2]}"#] {
            assert_eq!(
                deliver(&sink, &docs, &[("UPDATE", Some("1"), payload)]).await.outcome,
                done(1)
            );
        }
        let found = server.points(&docs, json!([1])).await;
        assert_eq!(found, [json!({ "id": 1, "vector": [2.0], "payload": {} })]);
        server.remove(&docs).await;
    })
    .await;
}

#[tokio::test]
async fn a_vector_of_the_wrong_length_refuses_its_group() {
    each(async |server| {
        let docs = server.collection("length", 2).await;
        let sink = sink(&server.url, "");
        let wanted = [
            ("INSERT", Some("1"), r#"{"vector":[1,2]}"#),
            ("INSERT", Some("2"), r#"{"vector":[1,2,3]}"#),
        ];
        let Outcome::Refused(reason) = deliver(&sink, &docs, &wanted).await.outcome else {
            panic!()
        };
        assert!(reason.starts_with("it answered 400: Wrong input: "), "{reason}");
        assert!(reason.contains("expected dim: 2, got 3"), "{reason}");
        assert_eq!(deliver(&sink, &docs, &wanted[..1]).await.outcome, done(1));
        assert_eq!(server.count(&docs).await, 1);
        server.remove(&docs).await;
    })
    .await;
}

#[tokio::test]
async fn what_is_no_vector_refuses_its_group_without_showing_it() {
    each(async |server| {
        let docs = server.collection("no-vector", 2).await;
        let sink = sink(&server.url, "");
        let wanted = [("INSERT", Some("1"), r#"{"vector":["secret",1]}"#)];
        let outcome = deliver(&sink, &docs, &wanted).await.outcome;
        let Outcome::Refused(reason) = &outcome else { panic!("{outcome:?}") };
        assert!(!reason.contains("secret"), "{reason}");
        server.remove(&docs).await;
    })
    .await;
}

#[tokio::test]
async fn a_missing_collection_is_named() {
    each(async |server| {
        let (sink, name) = (sink(&server.url, ""), new_name("missing"));
        let wanted = [("INSERT", Some("1"), r#"{"vector":[1]}"#), ("DELETE", Some("1"), "")];
        let problem = format!("collection `{name}` does not exist: create it, or declare `create`");
        let expected = vec![Verdict::Retry(problem), Verdict::Behind];
        let outcome = deliver(&sink, &name, &wanted).await.outcome;
        assert_eq!(outcome, Outcome::Answered(expected));
    })
    .await;
}

#[tokio::test]
async fn missing_collections_are_made_once_by_whoever_is_first() {
    each(async |server| {
        let (name, rest) = (new_name("made"), "create = { size = 2, distance = 'Cosine' }");
        let (one, two) = (sink(&server.url, rest), sink(&server.url, rest));
        let wanted = |key| [("INSERT", Some(key), r#"{"vector":[0.6,0.8]}"#)];
        let (first, second) = (wanted("1"), wanted("2"));
        let (first, second) =
            tokio::join!(deliver(&one, &name, &first), deliver(&two, &name, &second));
        assert_eq!((first.outcome, second.outcome), (done(1), done(1)));
        assert_eq!(server.count(&name).await, 2);
        let wrong = [("INSERT", Some("3"), r#"{"vector":[1]}"#)];
        let outcome = deliver(&one, &name, &wrong).await.outcome;
        assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
        server.remove(&name).await;
    })
    .await;
}

#[tokio::test]
async fn a_header_may_name_the_collection() {
    each(async |server| {
        let (red, blue) = (server.collection("red", 1).await, server.collection("blue", 1).await);
        let sink = sink(&server.url, "collection = '{header:collection}'");
        assert!(!sink.capabilities().mixes_topics, "a collection holds up no other topic's");
        let headers = |name: &str| Headers::from_iter([("collection", name)]);
        let (to_red, to_blue, nowhere) = (headers(&red), headers(&blue), Headers::new());
        let item = |headers, key| Item { headers, key, ..Item::record("m", r#"{"vector":[1]}"#) };
        let items = [
            item(&to_red, Some("1")),
            item(&to_blue, Some("1")),
            item(&nowhere, Some("2")),
            item(&to_red, Some("2")),
            item(&to_red, Some("3")),
        ];
        let outcome = sink.deliver(Delivery { connection: 0, items: &items }).await.outcome;
        let Outcome::Answered(verdicts) = outcome else { panic!("{outcome:?}") };
        assert!(matches!(&verdicts[2], Verdict::Dead(reason) if reason.contains("`collection`")));
        let others = [&verdicts[0], &verdicts[1], &verdicts[3], &verdicts[4]];
        assert_eq!(others, [&Verdict::Done, &Verdict::Done, &Verdict::Behind, &Verdict::Done]);
        assert_eq!((server.count(&red).await, server.count(&blue).await), (2, 1));
        server.remove(&red).await;
        server.remove(&blue).await;
    })
    .await;
}

#[tokio::test]
async fn a_server_that_is_there_passes_the_check() {
    each(async |server| assert_eq!(sink(&server.url, "").check().await.unwrap(), [None])).await;
}

#[tokio::test]
async fn a_call_is_one_request_with_few_operations() {
    let server = StandIn::start(None).await;
    let sink = sink(&server.url, "create = { size = 1 }");
    let point = r#"{"vector":[1]}"#;
    let wanted = [
        ("INSERT", Some("1"), point),
        ("INSERT", Some("2"), point),
        ("DELETE", Some("1"), ""),
        ("DELETE", Some("2"), ""),
        ("INSERT", Some("3"), point),
    ];
    assert_eq!(deliver(&sink, "docs", &wanted).await.outcome, done(5));
    // The first met no collection.
    let operations = ["upsert 2", "delete 2", "upsert 1"];
    assert_eq!(server.batches(), [operations, operations]);
}

#[tokio::test]
async fn the_key_opens_the_door_and_does_not_show() {
    let server = StandIn::start(Some("value of SECRET_KEY")).await;
    let wanted = [("INSERT", Some("1"), r#"{"vector":[1]}"#)];
    let right = sink(&server.url, "api_key = { env = 'SECRET_KEY' }\ncreate = { size = 1 }");
    assert_eq!(right.check().await.unwrap(), [None]);
    assert_eq!(deliver(&right, "docs", &wanted).await.outcome, done(1));
    for rest in ["api_key = { env = 'SECRET_WRONG' }", ""] {
        let wrong = sink(&server.url, rest);
        let Outcome::Broken(reason) = deliver(&wrong, "docs", &wanted).await.outcome else {
            panic!()
        };
        let error = wrong.check().await.unwrap_err().to_string();
        assert!(error.starts_with("`api_key` is refused: it answered 401"), "{error}");
        assert!(!format!("{reason} {error} {wrong:?} {right:?}").contains("value of"), "{reason}");
    }
    let clear = try_sink("http://example.com", "api_key = { env = 'SECRET_KEY' }").unwrap_err();
    assert!(clear.contains("sends secrets in the clear"), "{clear}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    let server = StandIn::start(None).await;
    let sink = sink(&server.url, "");
    drop(server);
    let wanted = [("INSERT", Some("1"), r#"{"vector":[1]}"#)];
    let outcome = deliver(&sink, "docs", &wanted).await.outcome;
    assert!(matches!(outcome, Outcome::Unavailable(_)), "{outcome:?}");
    assert!(sink.check().await.is_err());
}

#[tokio::test]
async fn a_server_that_is_busy_is_left_alone() {
    let busy = Canned::start("429 Too Many Requests\nRetry-After: 7", "").await;
    let wanted = [("INSERT", Some("1"), r#"{"vector":[1]}"#)];
    let outcome = deliver(&sink(&busy.url, ""), "docs", &wanted).await.outcome;
    let Outcome::Throttled { retry_after, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(retry_after.unwrap().as_secs(), 7);
}

#[tokio::test]
async fn a_server_that_never_answers_times_out() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let wanted = [("INSERT", Some("1"), r#"{"vector":[1]}"#)];
    let outcome = deliver(&sink(&url, "timeout = 0.2"), "docs", &wanted).await.outcome;
    assert_eq!(outcome, Outcome::TimedOut);
}

#[test]
fn capabilities_follow_from_the_config() {
    let of = |rest: &str| sink("https://example.com", rest).capabilities();
    let usual = of("");
    assert_eq!((usual.name, usual.max_group, usual.mixes_topics), ("qdrant", 256, false));
    assert!(of("collection = 'docs'").mixes_topics);
    assert!(of("collection = '{key}'").mixes_topics);
    assert!(!of("collection = '{topic}-{header:tenant}'").mixes_topics);
    for (rest, expected) in [
        ("wait = false", "unknown field `wait`"),
        ("collection = '{name}'", "`collection` has `{name}`"),
        ("create = { size = 0 }", "`create.size` is 0"),
        ("create = { size = 3, distance = 'cosine' }", "unknown variant `cosine`"),
        ("api_key = 'abc'", "`api_key` holds a secret itself"),
        ("max_group = 0", "`max_group` is 0: use 1 to 10000"),
    ] {
        let error = try_sink("https://example.com", rest).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}
