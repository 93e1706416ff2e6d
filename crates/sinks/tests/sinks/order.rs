//! Order per key in services that answer each item by itself, under random answers.

use crate::{
    dataverse,
    support::{env, http},
};
use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{StatusCode, Uri},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};
use tidegate_core::sink::{Delivery, Item, Outcome, Sink, Verdict};
use tidegate_sinks::dataverse::Dataverse;
use tokio::{net::TcpListener, task::JoinHandle};

const KEYS: u64 = 4;
const ITEMS: u64 = 24;

/// A service that takes any group, and decides about each item by chance.
struct Moody {
    url: String,
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Seen {
    dice: u64,
    /// What the sender knows to be done.
    done: BTreeSet<u64>,
    stored: Vec<u64>,
    /// What was sent although one before it with the same key was not known to be done.
    overtaken: Vec<(u64, u64)>,
}

impl Seen {
    fn roll(&mut self, sides: u64) -> u64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.dice >> 33) % sides
    }

    /// The status of each item of a request. Some that are stored are not said to be.
    fn take(&mut self, items: &[u64]) -> Vec<u16> {
        let sent: BTreeSet<u64> = items.iter().copied().collect();
        assert_eq!(sent.len(), items.len(), "an item is in a request once");
        for item in items {
            let before = (0..*item).filter(|other| other % KEYS == item % KEYS);
            let first = before.into_iter().find(|other| !self.done.contains(other));
            self.overtaken.extend(first.map(|other| (other, *item)));
        }
        let mut status = |item: &u64| match self.roll(10) {
            0..=5 => {
                self.stored.push(*item);
                200
            }
            6 => {
                self.stored.push(*item);
                500
            }
            7 => 429,
            _ => 500,
        };
        items.iter().map(&mut status).collect()
    }
}

impl Drop for Moody {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Moody {
    async fn start(seed: u64) -> Self {
        let seen = Arc::new(Mutex::new(Seen { dice: seed, ..Seen::default() }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(seen.clone());
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, seen, task }
    }
}

async fn answer(State(seen): State<Arc<Mutex<Seen>>>, uri: Uri, body: Bytes) -> Response {
    let text = std::str::from_utf8(&body).unwrap();
    if uri.path().starts_with("/oauth") {
        return json!({ "access_token": "t", "expires_in": 3600 }).to_string().into_response();
    }
    let mut seen = seen.lock().unwrap();
    let items = numbers(uri.path(), text);
    let statuses = seen.take(&items);
    // Some answers never come, or are about the whole.
    match seen.roll(8) {
        0 => return StatusCode::BAD_GATEWAY.into_response(),
        1 => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        _ => {}
    }
    if uri.path() == "/many" {
        let results: Vec<Value> = statuses.iter().map(|it| json!({ "status": it })).collect();
        return json!({ "results": results }).to_string().into_response();
    }
    if uri.path().ends_with("$batch") {
        let part = |status: &u16| {
            format!("--b\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 {status} x\r\n\r\n\r\n")
        };
        let body = format!("{}--b--\r\n", statuses.iter().map(part).collect::<String>());
        return ([("content-type", "multipart/mixed; boundary=b")], body).into_response();
    }
    if statuses.iter().all(|status| *status == 200) {
        return StatusCode::NO_CONTENT.into_response();
    }
    let detail = |(at, status): (usize, &u16)| json!({ "RequestIndex": at, "StatusCode": status });
    let details: Vec<Value> = statuses.iter().enumerate().map(detail).collect();
    let name = "@Microsoft.PowerApps.CDS.ErrorDetails.Plugin.BulkApiErrorDetails";
    let error = json!({ "code": "0x1", "message": "m", name: Value::from(details).to_string() });
    (StatusCode::BAD_REQUEST, json!({ "error": error }).to_string()).into_response()
}

/// The items of a request. A GUID ends with the number of its item.
fn numbers(path: &str, text: &str) -> Vec<u64> {
    let guid = |text: &str| text.rsplit('-').next().unwrap().parse().unwrap();
    let number = |item: &Value| match item["accountid"].as_str() {
        Some(id) => guid(id),
        None => item["n"].as_u64().unwrap(),
    };
    if path.ends_with("$batch") {
        let lines = text.lines().filter_map(|line| line.strip_prefix("DELETE "));
        return lines.map(|line| guid(line.split_once(')').unwrap().0)).collect();
    }
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(items)) => items.iter().map(number).collect(),
        Ok(item) if item["Targets"].is_array() => {
            item["Targets"].as_array().unwrap().iter().map(number).collect()
        }
        _ => text.lines().map(|line| number(&serde_json::from_str(line).unwrap())).collect(),
    }
}

fn dataverse(url: &str, rest: &str) -> Dataverse {
    let config = format!(
        "url = '{url}'\ntable = 'accounts'\nentity = 'account'\ntenant = 't'\n\
         token_url = '{url}/oauth'\nallow = ['127.0.0.1']\n\
         users = [{{ name = 'a', client_id = 'a', client_secret = {{ env = 'SECRET_A' }} }}]\n{rest}"
    );
    Dataverse::new(&toml::from_str(&config).unwrap(), &env).unwrap()
}

/// Sends everything that is not done, again and again, until all is.
async fn send_all(sink: &dyn Sink, service: &Moody) {
    let payload = |n: u64| {
        json!({ "n": n, "accountid": format!("00000000-0000-0000-0000-{n:012}") }).to_string()
    };
    let texts: Vec<(String, String, String)> =
        (0..ITEMS).map(|n| (n.to_string(), format!("k{}", n % KEYS), payload(n))).collect();
    for _ in 0..1_000 {
        let open: Vec<u64> = {
            let seen = service.seen.lock().unwrap();
            (0..ITEMS).filter(|n| !seen.done.contains(n)).collect()
        };
        if open.is_empty() {
            return;
        }
        let item = |n: &u64| {
            let (id, key, payload) = &texts[*n as usize];
            Item { key: Some(key), ..Item::record(id, payload) }
        };
        let items: Vec<Item<'_>> = open.iter().map(item).collect();
        let answer = sink.deliver(Delivery { connection: 0, items: &items }).await;
        if let Outcome::Answered(verdicts) = answer.outcome {
            assert_eq!(verdicts.len(), items.len());
            let done = open.iter().zip(verdicts).filter(|(_, verdict)| *verdict == Verdict::Done);
            service.seen.lock().unwrap().done.extend(done.map(|(n, _)| *n));
        }
    }
    panic!("it never ends");
}

#[tokio::test]
async fn nothing_is_sent_before_what_it_follows_is_known_to_be_done() {
    let delete = "operation = 'delete'\nkey = 'accountid'";
    let elastic = "operation = 'upsert'\nkey = 'accountid'\nelastic = true";
    type Make<'a> = &'a dyn Fn(&str) -> Box<dyn Sink>;
    let made: [(&str, Make<'_>); 5] = [
        ("array", &|url| Box::new(http(&format!("{url}/many"), "body = 'array'"))),
        ("ndjson", &|url| Box::new(http(&format!("{url}/many"), "body = 'ndjson'"))),
        ("$batch", &|url| Box::new(dataverse(url, delete))),
        ("elastic", &|url| Box::new(dataverse(url, elastic))),
        ("elastic delete", &|url| Box::new(dataverse(url, &format!("{delete}\nelastic = true")))),
    ];
    for (name, make) in made {
        for seed in 0..20 {
            let service = Moody::start(seed).await;
            let sink = make(&service.url);
            assert!(sink.one_per_key(), "{name}");
            send_all(&*sink, &service).await;
            let seen = service.seen.lock().unwrap();
            assert_eq!(seen.overtaken, [], "{name}, seed {seed}");
            let mut first: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
            for n in &seen.stored {
                let of_key = first.entry(n % KEYS).or_default();
                if !of_key.contains(n) {
                    of_key.push(*n);
                }
            }
            assert!(first.values().all(|of_key| of_key.is_sorted()), "{name}, seed {seed}");
        }
    }
}

#[tokio::test]
async fn what_has_no_order_goes_together() {
    let service = Moody::start(1).await;
    let sink = http(&format!("{}/many", service.url), "body = 'array'");
    let texts: Vec<String> = (0..9).map(|n| json!({ "n": n }).to_string()).collect();
    let item = |text| Item { key: Some("k"), ordered: false, ..Item::record("1", text) };
    let items: Vec<Item<'_>> = texts.iter().map(|text| item(text)).collect();
    let answer = sink.deliver(Delivery { connection: 0, items: &items }).await;
    assert!(!format!("{answer:?}").contains("Behind"), "{answer:?}");
}

/// UpdateMultiple carries out the first of two updates of a record, and says nothing about the second.
#[tokio::test]
async fn a_record_is_in_a_request_once_also_in_a_load() {
    let service = crate::support::start(dataverse::guarded());
    let sink = dataverse::sink(&service, "operation = 'update'\nkey = 'accountid'");
    let record = |name: &str| {
        json!({ "accountid": "00000000-0000-0000-0000-00000000000a", "name": name }).to_string()
    };
    let (one, two) = (record("one"), record("two"));
    let outcome = crate::support::deliver(&sink, &[&one, &two]).await.outcome;
    assert_eq!(outcome, Outcome::Answered(vec![Verdict::Done, Verdict::Behind]));
}
