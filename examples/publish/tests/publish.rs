//! The examples run as they stand, on the private server that `cargo xtask test` starts.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../../crates/postgres/tests/support/mod.rs"]
mod support;

use std::{env, ffi::OsString, path::Path, process::Command, time::Duration};
use support::{Database, POSTGRES};
use tidegate_core::{
    Message, Outbox, Publish, WorkerId,
    outbox::{ClaimRequest, Gained, Place, Reader, Share},
};
use tidegate_postgres::Postgres;

/// How long a relay waits for what is held back by transactions of others on the same server.
const DEADLINE: Duration = Duration::from_secs(60);

/// Every example publishes these, and nothing of what it rolls back or is refused.
const PUBLISHED: [[&str; 4]; 4] = [
    ["orders.created", "1", r#"{"item": "tea", "number": 1}"#, "/shop"],
    ["orders.created", "2", r#"{"item": "coffee", "number": 2}"#, "/shop"],
    ["orders.shipped", "1", r#"{"number": 1}"#, ""],
    ["orders.shipped", "2", r#"{"number": 2}"#, ""],
];

const REFUSED: &str =
    "refused with TG400: a topic has at least one character, no `*` and no control characters\n";

#[tokio::test]
async fn psql_publishes_in_a_transaction() {
    let psql = program("TIDEGATE_TEST_PSQL", "psql");
    // What a person set up for themselves is left out.
    check(|url| run(Command::new(psql).arg("-X").arg(url).args(["-f", "publish.sql"]))).await;
}

#[tokio::test]
async fn python_publishes_in_a_transaction() {
    let python = program("TIDEGATE_TEST_PYTHON", "python3");
    check(|url| run(Command::new(python).args(["publish.py", url]))).await;
}

#[tokio::test]
async fn rust_with_sqlx_publishes_in_a_transaction() {
    check(|url| run(Command::new(env!("CARGO_BIN_EXE_publish")).arg(url))).await;
}

/// What the documentation shows is what the tests have run.
#[test]
fn the_documentation_shows_parts_of_the_examples() {
    let page = include_str!("../../../docs/outbox.md");
    let (_, section) = page.split_once("\n### With psql, Python and Rust\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    for (language, example) in [
        ("```sql\n", include_str!("../publish.sql")),
        ("```python\n", include_str!("../publish.py")),
        ("```rust\n", include_str!("../publish.rs")),
    ] {
        let blocks = section.split(language).skip(1);
        let blocks: Vec<_> = blocks.filter_map(|rest| rest.split("```").next()).collect();
        assert!(!blocks.is_empty(), "{language}");
        for block in blocks {
            assert!(example.contains(block), "the example has no such lines:\n{block}");
        }
    }
}

/// The documented rights are enough for every function, also where a limit is looked at closely.
#[tokio::test]
async fn an_application_needs_no_more_than_the_documented_rights() {
    let page = include_str!("../../../docs/outbox.md");
    let grants = page.split("```").find(|block| block.starts_with("sql\ngrant")).unwrap();
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    store.limit_outstanding(Some(100)).await.unwrap();
    let client = database.client().await;
    let run = async |sql: &str| client.batch_execute(sql).await;
    // Ids that nobody has used make the limit look reached, until the messages are counted.
    run("select nextval('tidegate.message_id') from generate_series(1, 200)").await.unwrap();
    // Roles belong to the whole server: this one is never committed.
    run("begin; create role app").await.unwrap();
    run(grants.trim_start_matches("sql")).await.unwrap();
    run("set local role app").await.unwrap();
    let publish = "select tidegate.publish('t', 'k', '1');
        select tidegate.publish_bytes('t', 'k', '\\x31');
        select tidegate.publish_many(array['t'], array['k'], array['1']::jsonb[]);
        select tidegate.publish_many_bytes(array['t'], array['k'], array['\\x31']::bytea[])";
    run(publish).await.unwrap();
    let error = run("select payload from tidegate.message").await.unwrap_err();
    assert_eq!(error.code().map(|code| code.code()), Some("42501"), "{error}");
    run("rollback").await.unwrap();
}

/// Runs an example on a fresh database, and looks at what is there afterwards.
async fn check(example: impl FnOnce(&str) -> String) {
    let database = Database::create(POSTGRES).await;
    let store = database.store().await;
    let said = example(database.url().as_str());
    assert!(said.contains(REFUSED), "{said}");
    let orders = database.rows("select number, item, shipped from orders order by number").await;
    assert_eq!(orders, [["1", "tea", "t"], ["2", "coffee", "t"]]);
    let messages = tokio::time::timeout(DEADLINE, read_all(&store)).await.unwrap();
    let messages: Vec<_> = messages.iter().map(told).collect();
    assert_eq!(messages, PUBLISHED.map(|message| message.map(str::to_owned)));
}

/// Topic, key, payload and the only header, if it has one.
fn told(message: &Message) -> [String; 4] {
    let payload = String::from_utf8(message.payload.clone()).unwrap();
    let source = message.headers.get("ce-source").unwrap_or_default().to_owned();
    assert_eq!(message.headers.is_empty(), source.is_empty(), "{:?}", message.headers);
    [message.topic.clone(), message.key.clone().unwrap_or_default(), payload, source]
}

/// All messages in the order in which a relay with all lanes reads them.
async fn read_all(store: &Postgres) -> Vec<Message> {
    let relay = WorkerId("a relay".to_owned());
    let (epoch, held, routes) = Default::default();
    let share = Share { relay, epoch, held, routes, lease: Duration::from_secs(60) };
    let shared = store.share_lanes(share).await.unwrap();
    let (epoch, lanes) = (shared.epoch, shared.gained);
    let place = |gained: &Gained| Place { lane: gained.lease.lane, after: gained.cursor };
    let places = lanes.iter().map(place).collect();
    let readers = vec![Reader { places, most: 100, ..Reader::default() }];
    let request = ClaimRequest { epoch, readers, most_bytes: 1 << 20, ..ClaimRequest::default() };
    loop {
        let mut claim = store.claim_messages(request.clone()).await.unwrap();
        if !claim.held_back {
            return claim.readings.remove(0).messages;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// What `cargo xtask test` found, or else the first one in PATH.
fn program(variable: &str, name: &str) -> OsString {
    env::var_os(variable).unwrap_or_else(|| name.into())
}

/// Runs a command beside the examples; it must succeed. Returns what it wrote to standard output.
fn run(command: &mut Command) -> String {
    let output = command.current_dir(directory()).output();
    let output = output.unwrap_or_else(|error| panic!("could not run {command:?}: {error}"));
    let said = String::from_utf8(output.stdout).unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} gave {}: {said}{error}", output.status);
    said
}

fn directory() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
