//! A variable that is unset makes a flag empty. That must not mean "any".

use crate::support::Place;

fn refused(place: &Place, args: &[&str]) {
    let said = place.tidegate(args);
    assert_eq!(said.code, 2, "{args:?}: {}", said.stderr);
    assert!(
        said.stderr.contains("invalid value '"),
        "the flag is named: {args:?}: {}",
        said.stderr
    );
}

#[test]
fn an_empty_filter_chooses_nothing() {
    let place = Place::new();
    let sink = "[sinks.f]\nkind = 'file'\npath = '{topic}.db'\n";
    place.write(
        "tidegate.toml",
        format!("store = 'sqlite:s.db'\n{sink}[[routes]]\ntopic = '*'\nsink = 'f'\n"),
    );
    place.ok(&["publish", "s", "{}"]);
    assert_eq!(place.tidegate(&["relay", "--drain"]).code, 3, "it is dead");
    for filter in ["--topic", "--sink", "--reason"] {
        for empty in ["", " "] {
            refused(&place, &["outbox", "retry", filter, empty]);
            refused(&place, &["outbox", "drop", filter, empty, "--why", "x", "--yes"]);
            refused(&place, &["outbox", "list", filter, empty]);
        }
    }
    refused(&place, &["outbox", "retry", "--all", "--why", ""]);
    assert_eq!(place.json(&["outbox", "dead"])[0]["messages"], 1);
    place.ok(&["outbox", "retry", "--reason", "would be the store"]);
}

#[test]
fn texts_that_cannot_be_empty_are_refused() {
    let place = Place::new();
    let load = ["load", "in.ndjson", "--to", "http://127.0.0.1:1/"];
    for args in [
        ["load", "in.ndjson", "--to", ""].as_slice(),
        &[&load[..], &["--bearer-env", ""]].concat(),
        &[&load[..], &["--user", "", "--password-env", "P"]].concat(),
        &[&load[..], &["--user", "u", "--password-env", ""]].concat(),
        &[&load[..], &["--operation", ""]].concat(),
        &[&load[..], &["--id-field", ""]].concat(),
        &[&load[..], &["--allow", ""]].concat(),
        &[&load[..], &["--header", ""]].concat(),
        &["relay", "--to", ""],
        &["publish", "", "{}"],
        &["publish", "a", "{}", "--key", ""],
        &["publish", "a", "{}", "--header", ""],
        &["run", "--exec", "", "--runs", "1"],
        &["worker", "--exec", ""],
        &["batch", "replay", "1#0", "--exec", ""],
    ] {
        refused(&place, args);
    }
    assert!(place.files().is_empty());
}
