//! Texts that are none: SQLite takes any bytes for text, from any program.

use crate::store;
use async_trait::async_trait;
use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use rusqlite::Connection;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use tidegate_core::{
    Headers, InspectOutbox, MessageId, NewMessage, Retain, Sink, WorkerId,
    outbox::{
        AuditLine, Decision, Pattern, Route, Selection, Steering, Stuck, StuckQuery, StuckState,
    },
    sink::{Answer, Delivery, Hint, Outcome, SinkCapabilities, SinkError, Verdict},
};
use tidegate_engine::{
    Relay, RelayOptions, Stop,
    relay::{Plan, PlannedSink},
};
use tidegate_sqlite::Sqlite;

const LONG: Duration = Duration::from_secs(60);

/// What a message is made of: topic, key, headers, payload.
#[derive(Clone, Debug)]
struct Parts {
    topic: Vec<u8>,
    key: Option<Vec<u8>>,
    headers: Option<Vec<u8>>,
    payload: Vec<u8>,
}

/// A message as a sink gets it.
type Got = (String, Option<String>, Headers, Vec<u8>);

/// What each message came as, by its number.
#[derive(Default)]
struct Memory(Mutex<BTreeMap<i64, Got>>);

#[async_trait]
impl Sink for Memory {
    fn capabilities(&self) -> SinkCapabilities {
        SinkCapabilities {
            name: "memory",
            connections: vec!["main".to_owned()],
            operation: "publish".to_owned(),
            max_group: 100,
            mixes_topics: true,
            budgets: Vec::new(),
        }
    }

    async fn check(&self) -> Result<Vec<Option<Duration>>, SinkError> {
        Ok(vec![None])
    }

    async fn deliver(&self, delivery: Delivery<'_>) -> Answer {
        let mut got = self.0.lock().unwrap();
        for item in delivery.items {
            let id = item.id.rsplit('-').next().unwrap().parse().unwrap();
            let key = item.key.map(str::to_owned);
            let one = (item.topic.to_owned(), key, item.headers.clone(), item.payload.to_vec());
            assert_eq!(got.insert(id, one), None, "{id} came twice");
        }
        let verdicts = vec![Verdict::Done; delivery.items.len()];
        Answer { outcome: Outcome::Answered(verdicts), hint: Hint::default() }
    }
}

/// Relays everything that can be relayed.
async fn drain(store: &Sqlite, sink: &Arc<Memory>) {
    let pattern = || Pattern("*".to_owned());
    let pacer = tidegate_pacer::Options::default();
    let plan = Plan {
        sinks: vec![PlannedSink { name: "s".to_owned(), sink: sink.clone(), pacer }],
        routes: vec![Route { topics: pattern(), sink: "s".to_owned() }],
        policies: Vec::new(),
    };
    let options = RelayOptions { drain: true, ..RelayOptions::new(WorkerId("a relay".to_owned())) };
    let relay = Relay::new(Arc::new(store.clone()), plan, options).unwrap();
    tokio::time::timeout(LONG, relay.run(Stop::new())).await.unwrap().unwrap();
}

async fn stuck(store: &Sqlite) -> Vec<Stuck> {
    store.stuck(StuckQuery { limit: 1_000, ..StuckQuery::default() }).await.unwrap()
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let pieces: Vec<&[u8]> = vec![
        b"\xff",
        b"\x80",
        b"\xbf",
        b"\xc3",
        b"\xc3\xa9",
        b"\xc0\x80",
        b"\xc1\x81",
        b"\xe3\x81",
        b"\xe0\x80\xa1",
        b"\xed\xa0\x80",
        b"\xef\xbf\xbd",
        b"\xef\xbf\xbe",
        b"\xef\xbf\xbf",
        b"\xf0\x9f\xa6\x80",
        b"\xf4\x8f\xbf\xbf",
        b"\xf4\x90\x80\x80",
        b"\xf8\x88\x80\x80\x80",
        b"\xc2\x85",
        b"\x7f",
        b"\n",
        b"\0",
        b"*",
        b"\\",
        b"\"",
        b"\\u0000",
        b"\\ud800",
        b"\\ud83e\\udd80",
        b"\\\\u0000",
    ];
    let pieces = prop::sample::select(pieces).prop_map(<[u8]>::to_vec);
    let piece = prop_oneof![4 => "[a-zä日🦀 0-9]{1,3}".prop_map(String::into_bytes), 1 => pieces,
        1 => prop::collection::vec(any::<u8>(), 1..4)];
    let some = prop::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat());
    let many = (some.clone(), prop::sample::select(vec![30_usize, 254, 255, 1_023, 1_025]))
        .prop_map(|(some, length)| some.into_iter().chain(*b"x").cycle().take(length).collect());
    let text = "[a-zä日🦀]{1,9}".prop_map(String::into_bytes);
    // SQLite reads it as a negative number, and computes a lane from that.
    let negative = (1..4_usize).prop_map(|many| b"\xff\xbf\xbf\xbf\xbf\xbf\xbf".repeat(many));
    prop_oneof![12 => text, 6 => some, 1 => many, 1 => negative]
}

fn headers() -> impl Strategy<Value = Vec<u8>> {
    let object = (bytes(), bytes()).prop_map(|(name, value)| {
        [b"{\"", &name[..], b"\": \"", &value[..], b"\", \"content-type\": \"text/plain\"}"]
            .concat()
    });
    let fixed = [
        "{}",
        "{\"a\": 1}",
        "[]",
        "null",
        "",
        "{\"a\": \"b\"}\0x",
        "{\"a\": \"b\"} ",
        "{\"a\": {}}",
    ];
    let fixed = prop::sample::select(fixed.to_vec()).prop_map(|text| text.as_bytes().to_vec());
    prop_oneof![4 => object, 1 => fixed, 1 => bytes()]
}

fn parts() -> impl Strategy<Value = Parts> {
    let payload = prop_oneof![Just(b"{\"a\": 1}".to_vec()), Just(b"\"\xff\"".to_vec()), bytes()];
    let optional = |strategy: BoxedStrategy<Vec<u8>>| prop::option::of(strategy);
    (bytes(), optional(bytes().boxed()), optional(headers().boxed()), payload)
        .prop_map(|(topic, key, headers, payload)| Parts { topic, key, headers, payload })
}

impl Parts {
    /// As Rust would publish it, if it can be read at all.
    fn message(&self) -> Option<NewMessage> {
        let text = |bytes: &Vec<u8>| String::from_utf8(bytes.clone()).ok();
        let key = match &self.key {
            None => None,
            Some(key) => Some(text(key)?),
        };
        let headers = match &self.headers {
            None => Headers::new(),
            Some(headers) => serde_json::from_slice(headers).ok()?,
        };
        let (topic, payload) = (text(&self.topic)?, self.payload.clone());
        Some(NewMessage { topic, key, payload, headers, delay: None })
    }

    /// Whether Rust would publish it. What is left to the application is whether JSON is in UTF-8.
    fn is_sound(&self) -> bool {
        let lossy = || String::from_utf8_lossy(&self.payload).into_owned().into_bytes();
        self.message()
            .is_some_and(|message| NewMessage { payload: lossy(), ..message }.check().is_ok())
    }

    /// What a sink is to get, however it came into the table.
    fn expected(&self) -> Option<Got> {
        let message = self.message()?;
        let fits =
            message.topic.len() <= 255 && message.key.as_ref().is_none_or(|it| it.len() <= 1_024);
        fits.then_some((message.topic, message.key, message.headers, message.payload))
    }

    fn insert(&self, connection: &Connection, table: &str) -> rusqlite::Result<i64> {
        let Parts { topic, key, headers, payload } = self;
        let sql = format!(
            "INSERT INTO {table} (topic, key, headers, payload)
            VALUES (CAST(?1 AS TEXT), CAST(?2 AS TEXT), CAST(?3 AS TEXT), ?4)"
        );
        connection.execute(&sql, (topic, key, headers, payload))?;
        connection.query_row("SELECT max(id) FROM message", [], |row| row.get(0))
    }
}

/// Everything that people can ask for about the messages, whatever they are made of.
async fn look_at_everything(store: &Sqlite, connection: &Connection, ids: &[i64]) {
    store.outbox().await.unwrap();
    store.outstanding().await.unwrap();
    store.dead_groups().await.unwrap();
    for id in ids {
        let stored = store.message(MessageId::number(*id)).await.unwrap().unwrap();
        assert_eq!(stored.message.flaw().is_none(), stored.sent, "{stored:?}");
    }
    let mut view = connection.prepare("SELECT * FROM outbox").unwrap();
    let mut rows = view.query([]).unwrap();
    let mut seen = 0;
    while rows.next().unwrap().is_some() {
        seen += 1;
    }
    assert_eq!(seen, ids.len());
    let sealed = store.seal(Duration::ZERO).await.unwrap();
    if let Some(sealed) = sealed {
        let messages = store.sealed(sealed, None, 1_000).await.unwrap();
        assert!(messages.iter().all(|message| message.flaw().is_none()));
    }
}

async fn steer(store: &Sqlite, decision: Decision) -> u64 {
    let by = AuditLine { who: "me".to_owned(), why: "a test".to_owned(), ..AuditLine::default() };
    Steering::new(decision, Selection::default(), by).finish(store).await.unwrap()
}

/// Whatever is in the table: what can be read is delivered as it is, and all else is dead, alone.
#[tokio::test]
async fn whatever_is_in_the_outbox_one_bad_message_stops_no_other() {
    let mut runner = TestRunner::deterministic();
    let (mut taken, mut refused, mut dead, mut strays) = (0, 0, 0, 0);
    for _ in 0..12 {
        let (_directory, path, store) = store().await;
        let connection = Connection::open(&path).unwrap();
        let mut expected = BTreeMap::new();
        for _ in 0..60 {
            let parts = parts().new_tree(&mut runner).unwrap().current();
            let published = parts.insert(&connection, "outbox");
            assert_eq!(published.is_ok(), parts.is_sound(), "{parts:?}: {published:?}");
            match published {
                Ok(id) => {
                    expected.insert(id, parts.expected());
                    taken += 1;
                }
                Err(_) => {
                    let id = parts.insert(&connection, "message").unwrap();
                    expected.insert(id, parts.expected());
                    refused += 1;
                }
            }
        }
        let ids: Vec<i64> = expected.keys().copied().collect();
        store.outbox().await.unwrap();
        let sink = Arc::new(Memory::default());
        drain(&store, &sink).await;
        check(&store, &sink, &expected).await;
        look_at_everything(&store, &connection, &ids).await;
        // Somebody has another try with them, which changes nothing.
        let bad = expected.values().filter(|it| it.is_none()).count() as u64;
        assert_eq!(steer(&store, Decision::Retry).await, bad);
        drain(&store, &sink).await;
        check(&store, &sink, &expected).await;
        let sql = "SELECT count(*) FROM message WHERE lane NOT BETWEEN 0 AND 63";
        strays += connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        dead += bad;
        assert_eq!(steer(&store, Decision::Drop).await, bad);
        assert_eq!(stuck(&store).await, []);
        let sealed = store.seal(Duration::ZERO).await.unwrap().unwrap();
        assert_eq!(store.discard(sealed).await.unwrap(), ids.len() as u64 - bad);
        let left: i64 =
            connection.query_row("SELECT count(*) FROM message", [], |row| row.get(0)).unwrap();
        assert_eq!(left, 0);
    }
    let found = format!("{taken} taken, {refused} refused, {dead} dead, {strays} in no lane");
    assert!(taken > 100 && refused > 100 && dead > 100 && strays > 0, "{found}");
}

async fn check(store: &Sqlite, sink: &Memory, expected: &BTreeMap<i64, Option<Got>>) {
    let got = sink.0.lock().unwrap().clone();
    let delivered = expected.iter().filter_map(|(id, got)| Some((*id, got.clone()?)));
    assert_eq!(got, delivered.collect());
    let stuck = stuck(store).await;
    let dead: Vec<i64> = stuck.iter().filter_map(|it| it.id.as_number()).collect();
    let bad: Vec<i64> = expected.iter().filter(|it| it.1.is_none()).map(|it| *it.0).collect();
    assert_eq!(dead, bad);
    for it in stuck {
        assert_eq!(it.state, StuckState::Dead, "{it:?}");
        let reasons = ["is not valid UTF-8", "headers are no JSON object", "is the most"];
        assert!(reasons.iter().any(|reason| it.reason.contains(reason)), "{it:?}");
    }
}
