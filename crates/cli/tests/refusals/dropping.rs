//! Dead messages go for good only on purpose, and not without a copy.

use crate::support::Place;
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt};

/// Three dead messages, 1 to 3: the sink may not write to the file that their topic names.
fn dead() -> Place {
    let place = Place::new();
    let sink = "[sinks.f]\nkind = 'file'\npath = '{topic}.db'\n";
    let route = "[[routes]]\ntopic = '*'\nsink = 'f'\n";
    place.write("tidegate.toml", format!("store = 'sqlite:s.db'\n{sink}{route}"));
    for n in 1..=3 {
        let payload = format!("{{\"n\":{n}}}");
        place.ok(&["publish", "s", &payload, "--header", "x-tenant: north"]);
    }
    assert_eq!(place.tidegate(&["relay", "--drain"]).code, 3);
    place
}

fn left(place: &Place) -> Value {
    place.json(&["outbox", "dead"])[0]["messages"].clone()
}

#[test]
fn dropping_needs_a_reason_and_a_confirmation() {
    let place = dead();
    assert_eq!(place.tidegate(&["outbox", "drop", "--all"]).code, 2);
    assert_eq!(place.tidegate(&["outbox", "drop", "--all", "--why", " "]).code, 2);
    let drop = ["outbox", "drop", "--all", "--why", "too late"];
    let said = place.tidegate(&drop);
    let asks = said.stderr.contains("this would drop 3 dead messages: confirm it with --yes");
    assert!(said.code == 1 && asks, "{}", said.stderr);
    let would = place.json(&[&drop[..], &["--dry-run"]].concat());
    assert_eq!((&would["would_drop"], &would["ids"]), (&json!(3), &json!([1, 2, 3])));
    for (file, expect) in [
        ("s.db", "the store"),
        ("s.db-wal", "the store"),
        ("tidegate.toml", "the configuration"),
        ("no/such/file", "nothing was dropped"),
        (".", "exists already"),
    ] {
        let said = place.tidegate(&[&drop[..], &["--yes", "--export", file]].concat());
        assert!(said.code == 1 && said.stderr.contains(expect), "{file}: {}", said.stderr);
    }
    assert_eq!(left(&place), 3);
    assert_eq!(place.json(&["outbox", "audit"]), json!([]), "nothing was decided");
}

#[test]
fn what_is_dropped_is_copied_first_and_named_in_the_audit_log() {
    let place = dead();
    let dropped = place.json(&["outbox", "drop", "--all", "--why", "too late", "--yes"]);
    assert_eq!(dropped["dropped"], 3);
    let file = place.path(dropped["copy"].as_str().unwrap());
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let copy = fs::read_to_string(&file).unwrap();
    let copy: Vec<Value> = copy.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: Vec<_> = copy.iter().map(|line| line["payload"]["n"].clone()).collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(copy[0]["headers"]["x-tenant"], "north");
    let audit = place.json(&["outbox", "audit"]);
    let why = audit[0]["why"].as_str().unwrap();
    assert!(
        audit[0]["what"] == "drop" && why.starts_with("too late (ids 1-3; copy in "),
        "{audit}"
    );
    let who = audit[0]["who"].as_str().unwrap();
    assert!(!who.is_empty() && who != "unknown", "{audit}");
}

#[test]
fn messages_that_are_not_there_are_an_error() {
    let place = dead();
    for action in ["retry", "drop"] {
        let said = place.tidegate(&["outbox", action, "4711", "--why", "a test"]);
        assert!(said.stderr.contains("1 of those named are not dead"), "{}", said.stderr);
        assert_eq!(said.code, 1, "{}", said.stderr);
    }
    let named = ["outbox", "drop", "2", "4711", "--why", "a test", "--discard"];
    let said = place.tidegate(&named);
    assert_eq!(said.code, 1, "one of them is not there: {}", said.stderr);
    assert!(said.stderr.contains("dropped 1 dead message"), "{}", said.stderr);
    assert_eq!(left(&place), 2);
    let copies =
        place.files().into_keys().filter(|path| path.to_string_lossy().contains("dropped-"));
    assert_eq!(copies.count(), 0);
}

#[test]
fn drops_within_a_second_have_a_copy_each() {
    let place = dead();
    let mut copies = std::collections::BTreeSet::new();
    for id in ["1", "2", "3"] {
        let dropped = place.json(&["outbox", "drop", id, "--why", "a test"]);
        copies.insert(dropped["copy"].as_str().unwrap().to_owned());
    }
    assert_eq!(copies.len(), 3, "{copies:?}");
    assert!(copies.iter().all(|copy| place.path(copy).is_file()));
}

#[test]
fn what_was_retried_is_told_in_the_audit_log() {
    let place = dead();
    place.ok(&["outbox", "retry", "--all", "--why", "again"]);
    assert_eq!(place.tidegate(&["relay", "--drain"]).code, 3);
    place.ok(&["outbox", "retry", "--topic", "s"]);
    let audit = place.json(&["outbox", "audit"]);
    let whys: Vec<_> = audit.as_array().unwrap().iter().map(|line| &line["why"]).collect();
    assert_eq!(whys, ["topic s: ids 1-3", "again (all: ids 1-3)"], "{audit}");
}
