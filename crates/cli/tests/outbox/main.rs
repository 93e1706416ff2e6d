//! Publishing and relaying by the command line.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../support/mod.rs"]
mod support;

mod application;

use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering::Relaxed},
    },
    thread,
};
use support::{Place, Said, database, signal, wait_until};

const FILE_SINK: &str = "\
[sinks.out]
kind = 'file'
path = 'out.ndjson'
[[routes]]
topic = '*'
sink = 'out'
";

/// A service that gives every request the same answer, which can be changed.
struct Service {
    port: u16,
    status: Arc<AtomicU16>,
}

impl Service {
    fn start(status: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let status = Arc::new(AtomicU16::new(status));
        let shared = status.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let status = shared.clone();
                thread::spawn(move || answer(stream, &status));
            }
        });
        Self { port, status }
    }

    fn config(&self) -> String {
        format!(
            "[sinks.hook]\nkind = 'http'\nurl = 'http://127.0.0.1:{}/{{topic}}'\n\
             allow = ['127.0.0.1']\n[[routes]]\ntopic = '*'\nsink = 'hook'\n",
            self.port
        )
    }
}

fn answer(stream: TcpStream, status: &AtomicU16) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    loop {
        let (mut length, mut line) = (0, String::new());
        loop {
            line.clear();
            match reader.read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if line.trim().is_empty() => break,
                Ok(_) => {}
            }
            let header = line.to_ascii_lowercase();
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let status = status.load(Relaxed);
        let answer = format!("HTTP/1.1 {status} Whatever\r\ncontent-length: 7\r\n\r\nno such");
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn publish_lines(place: &Place, args: &[&str], lines: &str) -> Said {
    let args = [&["publish"], args, &["--lines"]].concat();
    let mut child = place
        .command(&args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    child.wait_with_output().unwrap().into()
}

fn delivered(place: &Place) -> Vec<Value> {
    let text = fs::read_to_string(place.path("out.ndjson")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn messages_are_delivered_once_and_in_order() {
    for store in ["sqlite:box.db".to_owned(), database().await] {
        let place = Place::new();
        place.write("tidegate.toml", format!("store = '{store}'\n{FILE_SINK}"));
        let lines: String = (0..3_000).map(|n| format!("{{\"n\":{n}}}\n")).collect();
        let said = publish_lines(&place, &["orders.new", "--key", "17"], &lines);
        assert_eq!(said.code, 0, "{}", said.stderr);
        assert_eq!(place.ok(&["publish", "other", "7"]), "3001\n");
        let status = place.json(&["outbox", "status"]);
        assert_eq!(status["outstanding"], 3_001);

        let report = place.json(&["relay", "--drain"]);
        assert_eq!(report["counts"]["delivered"], 3_001);
        let seen = delivered(&place);
        let of_key: Vec<u64> = seen
            .iter()
            .filter(|line| line["key"] == "17")
            .map(|line| line["payload"]["n"].as_u64().unwrap())
            .collect();
        assert!(of_key.iter().copied().eq(0..3_000), "in order, and none twice");
        assert_eq!(seen.len(), 3_001);
        assert_eq!(place.json(&["outbox", "status"])["outstanding"], 0);
        assert_eq!(place.json(&["relay", "--drain"])["counts"]["delivered"], 0, "not again");
    }
}

#[tokio::test]
async fn dead_messages_are_listed_shown_retried_and_dropped() {
    for store in ["sqlite:box.db".to_owned(), database().await] {
        let (place, service) = (Place::new(), Service::start(422));
        place.write("tidegate.toml", format!("store = '{store}'\n{}", service.config()));
        for n in 1..=3 {
            place.ok(&[
                "publish",
                "orders",
                &format!("{{\"n\":{n}}}"),
                "--header",
                "X-Tenant: north",
            ]);
        }
        let said = place.tidegate(&["relay", "--drain", "--json"]);
        assert_eq!((&said.json()["counts"]["dead"], said.code), (&json!(3), 3), "{}", said.stderr);
        assert!(said.stderr.contains("message 1 on orders is dead: "), "{}", said.stderr);
        assert!(!said.stderr.contains("message 2 on orders is dead"), "{}", said.stderr);

        let dead = place.json(&["outbox", "dead"]);
        assert_eq!((&dead[0]["messages"], &dead[0]["sink"]), (&json!(3), &json!("hook")));
        assert!(dead[0]["reason"].as_str().unwrap().contains("422"), "{dead}");
        let shown = place.json(&["outbox", "show", "2"]);
        assert_eq!((&shown["payload"]["n"], &shown["state"]), (&json!(2), &json!("dead")));
        assert_eq!(shown["headers"]["X-Tenant"], "north");

        let name = shown["name"].as_str().unwrap();
        assert_eq!(place.json(&["outbox", "show", name])["id"], 2);
        for action in ["show", "retry", "drop"] {
            let why: &[&str] = if action == "show" { &[] } else { &["--why", "a test"] };
            for id in ["another-2", "nonsense", "02", "99999999999999999999", "a-"] {
                let said = place.tidegate(&[&["outbox", action, id], why].concat());
                let refused = said.stderr.contains(&format!("no message is called `{id}`"));
                assert!(said.code == 1 && refused, "{}", said.stderr);
            }
        }
        let said = place.tidegate(&["outbox", "retry"]);
        assert!(said.code == 1 && said.stderr.contains("take --all"), "{}", said.stderr);
        service.status.store(204, Relaxed);
        assert_eq!(place.json(&["outbox", "retry", "1", "--why", "mended"])["retried"], 1);
        let said = place.tidegate(&["outbox", "retry", "1"]);
        assert!(said.stderr.contains("1 of those named are not dead"), "{}", said.stderr);
        let drop = ["outbox", "drop", "--topic", "orders", "--why", "too late", "--yes"];
        assert_eq!(place.json(&drop)["dropped"], 2);
        assert_eq!(place.json(&["relay", "--drain"])["counts"]["delivered"], 1);
        let audit = place.json(&["outbox", "audit"]);
        assert_eq!(
            (&audit[0]["what"], &audit[1]["why"]),
            (&json!("drop"), &json!("mended (ids 1)"))
        );
        assert_eq!(place.json(&["outbox", "dead"]), json!([]));
    }
}

#[test]
fn a_receiver_that_is_gone_is_left_alone_and_a_drain_says_so() {
    let (place, service) = (Place::new(), Service::start(410));
    let routes = "[[routes]]\ntopic = 'other'\nsink = 'out'\n[sinks.out]\nkind = 'file'\npath = 'out.ndjson'\n";
    let hook = service.config().replace("/{topic}", "/hook");
    place.write("tidegate.toml", format!("store = 'sqlite:box.db'\n{routes}{hook}"));
    place.ok(&["publish", "orders", "1"]);
    place.ok(&["publish", "orders", "2"]);
    place.ok(&["publish", "other", "3"]);
    let said = place.tidegate(&["relay", "--drain", "--json"]);
    let report = said.json();
    assert_eq!((&report["counts"]["delivered"], said.code), (&json!(1), 3), "{}", said.stderr);
    assert!(report["gone"]["hook"].as_str().unwrap().contains("gone for good (410)"), "{report}");
    assert_eq!(report["sent"]["hook"]["requests"], 1, "nobody asks again");
    assert_eq!(place.json(&["outbox", "status"])["outstanding"], 2, "its messages wait");
    service.status.store(204, Relaxed);
    assert_eq!(place.json(&["relay", "--drain"])["counts"]["delivered"], 2, "it is back");
    assert_eq!(place.json(&["outbox", "show", "1"])["state"], "sent");
}

#[test]
fn what_others_wrote_does_not_steer_the_terminal() {
    let place = Place::new();
    place.write("tidegate.toml", "store = 'sqlite:box.db'\n");
    let (key, text) = ("\u{1b}[31mred", "two\nlines \u{1b}[0m");
    place.ok(&["publish", "orders", "--header", "content-type: text/plain", text]);
    // As a version before wrote it, which did not look at keys.
    let connection = rusqlite::Connection::open(place.path("box.db")).unwrap();
    connection.execute("UPDATE message SET key = ?1", [key]).unwrap();
    let shown = place.ok(&["outbox", "show", "1"]);
    assert!(shown.contains("key        \\u{1b}[31mred"), "{shown}");
    assert!(shown.contains("state      outstanding"), "{shown}");
    assert!(shown.contains("published  ") && shown.contains("\ntwo\nlines "), "{shown}");
    assert!(!shown.contains('\u{1b}'), "{shown}");
}

#[test]
fn a_key_is_refused_that_is_empty_or_has_control_characters() {
    let place = Place::new();
    place.write("tidegate.toml", "store = 'sqlite:box.db'\n");
    let said = place.tidegate(&["publish", "orders", "1", "--key", ""]);
    assert_eq!(said.code, 2, "an unset variable: {}", said.stderr);
    for key in ["a\nb", "\u{1b}[31mred", "a\u{85}b"] {
        let said = place.tidegate(&["publish", "orders", "1", "--key", key]);
        assert_eq!(said.code, 1, "{key:?}: {}", said.stderr);
        let advice =
            "a key has at least one character and no control characters; leave it out for no order";
        assert!(said.stderr.contains(advice), "{}", said.stderr);
    }
    place.ok(&["publish", "orders", "1", "--key", "a b"]);
    assert_eq!(place.json(&["outbox", "status"])["outstanding"], 1);
}

/// SQLite takes any bytes for text, from any program: one such message stops nothing else.
#[test]
fn what_is_no_text_is_dead_alone_and_every_command_shows_it() {
    let place = Place::new();
    place.write("tidegate.toml", "store = 'sqlite:box.db'\n");
    place.ok(&["publish", "orders", "1"]);
    let connection = rusqlite::Connection::open(place.path("box.db")).unwrap();
    let bad = [
        "CAST(x'6fff' AS TEXT), 'k', NULL",
        "'orders', CAST(x'ff41' AS TEXT), NULL",
        "'orders', CAST(x'ffbfbfbfbfbfbf' AS TEXT), NULL",
        "'orders', 'k', '{\"a\": \"\\ud800\"}'",
        "'orders', 'k', 'x' || char(0)",
    ];
    for values in bad {
        let sql =
            format!("INSERT INTO message (topic, key, headers, payload) VALUES ({values}, x'31')");
        connection.execute(&sql, []).unwrap();
    }
    place.ok(&["publish", "orders", "2", "--key", "k"]);
    place.ok(&["outbox", "status"]);
    let said = place.tidegate(&["relay", "--to", "stdout", "--drain"]);
    assert_eq!(said.stdout.lines().count(), 2, "{}{}", said.stdout, said.stderr);
    let dead = place.ok(&["outbox", "dead"]);
    assert!(dead.contains("is not valid UTF-8") && dead.contains("o\u{fffd}"), "{dead}");
    let count = || {
        let status = place.json(&["outbox", "status"]);
        let topics = status["topics"].as_array().unwrap();
        topics.iter().map(|topic| topic["dead"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(count(), bad.len() as u64);
    place.ok(&["outbox", "list"]);
    for id in 2..=6 {
        place.ok(&["outbox", "show", &id.to_string()]);
    }
    place.ok(&["outbox", "drop", "--all", "--yes", "--why", "no text"]);
    assert_eq!(count(), 0);
}

#[test]
fn a_relay_ends_when_nobody_reads_what_it_prints() {
    let place = Place::new();
    place.write("tidegate.toml", "store = 'sqlite:box.db'\n");
    place.ok(&["publish", "orders", "1"]);
    let mut relay = place.spawn(&["relay", "--to", "stdout", "--drain"]);
    drop(relay.stdout.take());
    wait_until("the relay ends", || relay.try_wait().unwrap());
    assert_eq!(place.json(&["outbox", "status"])["outstanding"], 1, "it was not delivered");
}

#[test]
fn a_relay_starts_without_its_sink_and_goes_on_when_it_is_there() {
    let place = Place::new();
    // Nobody listens here yet.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let config = Service { port, status: Arc::default() }.config();
    place.write("tidegate.toml", format!("store = 'sqlite:box.db'\n{config}"));
    place.ok(&["publish", "orders", "{}"]);
    let mut relay = place.spawn(&["relay"]);
    let mut lines = BufReader::new(relay.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("cannot reach hook") && line.contains("tried again")));

    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let status = Arc::new(AtomicU16::new(200));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let status = status.clone();
            thread::spawn(move || answer(stream, &status));
        }
    });
    wait_until("the message is delivered", || {
        (place.json(&["outbox", "status"])["outstanding"] == 0).then_some(())
    });
    signal(&relay, "TERM");
    drop(lines);
    assert_eq!(relay.wait().unwrap().code(), Some(143));
    assert_eq!(place.json(&["outbox", "status"])["relays"], json!([]), "its lanes are given back");
}

#[test]
fn what_cannot_be_is_refused_and_nothing_is_lost() {
    let place = Place::new();
    let refused = |args: &[&str], expected: &str| {
        let said = place.tidegate(args);
        assert!(said.code != 0 && said.stderr.contains(expected), "{args:?}: {}", said.stderr);
    };
    refused(&["publish", "orders", "{\"n\":"], "the payload is no JSON");
    refused(&["publish", "or*ders", "{}"], "no `*`");
    refused(&["publish", "orders", "{}", "--header", "nonsense"], "is no header");
    place.write("big.json", format!("\"{}\"", "x".repeat(1 << 20)));
    let big = fs::File::open(place.path("big.json")).unwrap();
    let said: Said = place.command(&["publish", "big"]).stdin(big).output().unwrap().into();
    assert!(said.stderr.contains("1048576 is the most"), "{}", said.stderr);

    place.ok(&["publish", "orders", "{}"]);
    refused(&["relay"], "there are no routes");
    refused(&["relay", "--to", "nowhere"], "there is no sink `nowhere`");
    refused(&["relay", "--to", "stdot"], "did you mean `stdout`?");
    place.write("tidegate.toml", "[[routes]]\ntopic = '*'\nsinc = 'x'");
    refused(&["relay"], "`sinc` is no key here; did you mean `sink`?");
    place.write("tidegate.toml", "[sinks.x]\nkind = 'htpt'\n[[routes]]\ntopic = '*'\nsink = 'x'");
    refused(&["check"], "did you mean `http`?");
    place.write(
        "tidegate.toml",
        "[sinks.out]\nkind = 'stdout'\n[[routes]]\ntopic = 'other'\nsink = 'out'",
    );
    let report = place.tidegate(&["relay", "--drain"]);
    assert!(report.stderr.contains("1 without a route"), "{}", report.stderr);
    assert_eq!(place.json(&["outbox", "status"])["topics"][0]["unrouted"], 1);
    let said = place.tidegate(&["relay", "--to", "stdout", "--drain", "--quiet"]);
    assert_eq!(said.stdout.lines().count(), 1, "kept, and delivered when there is a route");
}

#[tokio::test]
async fn too_many_outstanding_messages_are_refused() {
    for store in ["sqlite:box.db".to_owned(), database().await] {
        let place = Place::new();
        place.write("tidegate.toml", format!("store = '{store}'\n{FILE_SINK}"));
        place.ok(&["publish", "orders", "1"]);
        place.ok(&["outbox", "limit", "3"]);
        place.ok(&["publish", "orders", "2"]);
        place.ok(&["publish", "orders", "3"]);
        let said = place.tidegate(&["publish", "orders", "4"]);
        assert!(said.stderr.contains("3 is the limit"), "{}", said.stderr);
        place.ok(&["relay", "--drain"]);
        place.ok(&["publish", "orders", "4"]);
        place.ok(&["outbox", "limit", "off"]);
        assert_eq!(place.json(&["outbox", "status"])["limit"], Value::Null);
    }
}

#[tokio::test]
async fn what_was_only_set_aside_keeps_nothing_from_being_archived() {
    for store in ["sqlite:box.db".to_owned(), database().await] {
        let place = Place::new();
        let routes = FILE_SINK.replace("'*'", "'orders'");
        place.write("tidegate.toml", format!("store = '{store}'\n{routes}"));
        place.ok(&["publish", "unknown", "1"]);
        place.ok(&["relay", "--drain"]);
        assert_eq!(place.json(&["outbox", "archive", "sent"])["messages"], 0);
        place.ok(&["publish", "orders", "2"]);
        place.ok(&["relay", "--drain"]);
        assert_eq!(place.json(&["outbox", "archive", "sent"])["messages"], 1);
        let topics = place.json(&["outbox", "status"]);
        assert_eq!(topics["topics"][0]["unrouted"], 1, "it is still there: {topics}");
    }
}

#[tokio::test]
async fn what_was_sent_is_archived_and_removed() {
    for store in ["sqlite:box.db".to_owned(), database().await] {
        let place = Place::new();
        place.write("tidegate.toml", format!("store = '{store}'\n{FILE_SINK}"));
        let lines: String = (0..5_000).map(|n| format!("{n}\n")).collect();
        assert_eq!(publish_lines(&place, &["orders"], &lines).code, 0);
        assert_eq!(place.json(&["outbox", "archive", "sent"])["messages"], 0, "nothing was sent");
        place.ok(&["relay", "--drain"]);
        let archived = place.json(&["outbox", "archive", "sent"]);
        assert_eq!(archived["messages"], 5_000);
        let mut numbers: Vec<u64> = Vec::new();
        for file in archived["files"].as_array().unwrap() {
            let bytes = fs::read(place.path(file.as_str().unwrap())).unwrap();
            let text = String::from_utf8(zstd::decode_all(&*bytes).unwrap()).unwrap();
            let line = |line: &str| {
                serde_json::from_str::<Value>(line).unwrap()["payload"].as_u64().unwrap()
            };
            numbers.extend(text.lines().map(line));
        }
        assert!(numbers.into_iter().eq(0..5_000));
        let said = place.tidegate(&["outbox", "show", "17"]);
        assert!(said.stderr.contains("is not stored"), "{}", said.stderr);
        place.ok(&["publish", "orders", "1"]);
        assert_eq!(place.json(&["relay", "--drain"])["counts"]["delivered"], 1, "it goes on");
        assert_eq!(place.json(&["outbox", "purge", "--older-than", "0s"])["removed"], 1);
    }
}

#[test]
fn a_drain_says_what_it_leaves() {
    let place = Place::new();
    let routes = "[[routes]]\ntopic = 'orders'\nsink = 'stdout'\n";
    place.write("tidegate.toml", format!("store = 'sqlite:box.db'\n{routes}"));
    place.ok(&["publish", "letters", "{}"]);
    place.ok(&["publish", "orders", "{}"]);
    for _ in 0..2 {
        let said = place.tidegate(&["relay", "--drain"]);
        assert_eq!(said.code, 0, "{}", said.stderr);
        assert!(said.stderr.contains("1 without a route: add [[routes]]"), "{}", said.stderr);
    }
    place.write(
        "tidegate.toml",
        "store = 'sqlite:box.db'\n[[topics]]\ntopic = '*'\nmax_attempts = 0",
    );
    let said = place.tidegate(&["check"]);
    assert!(said.stderr.contains("`max_attempts` of topic * must be above 0"), "{}", said.stderr);
}
