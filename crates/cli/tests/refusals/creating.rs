//! Looking at a store that is not there makes none.

use crate::support::{Place, Said, connect, database};
use std::fs;

/// Only these make a store.
const CREATE: [&str; 5] = ["publish", "run", "submit", "load", "migrate"];
/// These need none.
const WITHOUT: [&str; 9] = [
    "completions",
    "workload list",
    "workload show",
    "pace simulate",
    "pace tournament",
    "drill",
    "bench load",
    "bench relay",
    "bench dynamodb",
];
const CONFIG: &str = "[sinks.out]\nkind = 'stdout'\n[[routes]]\ntopic = '*'\nsink = 'out'\n";

/// Every command that has no commands below it, as the binary's own help tells them: a new one is
/// covered at once.
fn leaves(place: &Place, path: &[String]) -> Vec<Vec<String>> {
    let words: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
    let help = place.ok(&words);
    let Some((_, commands)) = help.split_once("\nCommands:\n") else { return vec![path.to_vec()] };
    let commands = commands.lines().take_while(|line| line.starts_with("  "));
    // What is indented further goes on with the description above it.
    let names = commands.filter(|line| !line.starts_with("   ")).filter_map(|line| {
        line.split_whitespace().next().map(str::to_owned).filter(|name| name != "help")
    });
    let mut found: Vec<Vec<String>> =
        names.flat_map(|name| leaves(place, &[path, &[name]].concat())).collect();
    // It also does something by itself.
    if path == ["pace"] {
        found.push(path.to_vec());
    }
    found
}

/// All that a command requires, by its own usage.
fn complete(place: &Place, leaf: &[String]) -> Vec<String> {
    let mut words: Vec<&str> = leaf.iter().map(String::as_str).collect();
    let name = leaf.join(" ");
    let more: &[&str] = match name.as_str() {
        "outbox drop" | "outbox retry" => &["1"],
        "worker" => &["--until-idle"],
        "relay" => &["--drain"],
        "bench batch" => &["--only", "ranges", "--runs", "10", "--repeat", "1"],
        _ => &[],
    };
    words.push("--help");
    let help = place.ok(&words);
    words.pop();
    let usage = help.lines().find_map(|line| line.strip_prefix("Usage: tidegate ")).unwrap();
    let mut required = usage.strip_prefix(&name).unwrap().split_whitespace();
    let mut full: Vec<String> = leaf.to_vec();
    while let Some(word) = required.next() {
        match word {
            word if word.starts_with("--") => {
                full.push(word.to_owned());
                full.push(value(required.next().unwrap()));
            }
            word if word.starts_with('<') => full.push(value(word)),
            _ => {}
        }
    }
    full.extend(more.iter().map(|word| (*word).to_owned()));
    full
}

fn value(placeholder: &str) -> String {
    match placeholder {
        "<BATCH#INDEX>" => "1#0",
        "<DIRECTORY>" => "sent",
        "<TIME>" => "1d",
        _ => "1",
    }
    .to_owned()
}

fn looking(place: &Place) -> Vec<Vec<String>> {
    let all = leaves(place, &[]);
    assert!(all.len() > 25, "{all:?}");
    let is_in = |leaf: &[String], list: &[&str]| {
        list.iter().any(|name| leaf.join(" ") == *name || leaf[0] == *name)
    };
    let without: Vec<_> = all.iter().filter(|leaf| is_in(leaf, &WITHOUT)).collect();
    assert!(without.len() >= WITHOUT.len(), "{without:?}");
    let looks = all.iter().filter(|leaf| !is_in(leaf, &CREATE) && !is_in(leaf, &WITHOUT));
    looks.map(|leaf| complete(place, leaf)).collect()
}

/// The command says that there is no store, and what to do.
fn refuses(place: &Place, args: &[String], store: &str) {
    let all: Vec<&str> = args.iter().map(String::as_str).chain(["--store", store]).collect();
    let Said { code, stdout, stderr } = place.tidegate(&all);
    assert_eq!(code, 1, "{args:?}: {stderr}");
    let said = format!("{stdout}{stderr}");
    let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("no store") && flat.contains("migrate"), "{args:?}: {said}");
}

#[test]
fn no_command_that_looks_makes_a_store() {
    let place = Place::new();
    place.write("tidegate.toml", CONFIG);
    place.write("empty.db", "");
    let before = place.files();
    for args in looking(&place) {
        refuses(&place, &args, "sqlite:tidegate.db");
        refuses(&place, &args, "sqlite:empty.db");
        assert_eq!(place.files(), before, "{args:?}");
    }
}

#[tokio::test]
async fn no_command_that_looks_makes_a_schema() {
    let place = Place::new();
    place.write("tidegate.toml", CONFIG);
    let url = database().await;
    let client = connect(&url).await;
    for args in looking(&place) {
        refuses(&place, &args, &url);
        let sql = "select 1 from pg_namespace where nspname = 'tidegate'";
        assert!(client.query(sql, &[]).await.unwrap().is_empty(), "{args:?}");
    }
}

#[test]
fn those_that_make_a_store_say_so_once() {
    for args in [
        ["publish", "orders", "{}"].as_slice(),
        &["run", "noop", "--runs", "10"],
        &["submit", "noop", "--runs", "10"],
        &["migrate"],
    ] {
        let place = Place::new();
        let first = place.tidegate(args);
        assert_eq!(first.code, 0, "{}", first.stderr);
        let told = first.stderr.matches("created the store tidegate.db").count();
        assert_eq!(told, 1, "{args:?}: {}", first.stderr);
        assert!(!first.stdout.contains("created"), "{}", first.stdout);
        let again = place.tidegate(args);
        assert!(again.code == 0 && !again.stderr.contains("created"), "{}", again.stderr);
        let quiet = Place::new().tidegate(&[args, &["--quiet"]].concat());
        assert_eq!(quiet.stderr, "", "{args:?}");
    }
    let memory = Place::new().tidegate(&["run", "noop", "--runs", "1", "--store", "memory:"]);
    assert!(!memory.stderr.contains("created"), "{}", memory.stderr);
}

#[test]
fn an_empty_address_is_refused_wherever_it_comes_from() {
    for args in [["publish", "a", "{}"].as_slice(), &["outbox", "status"], &["migrate"], &["relay"]]
    {
        let place = Place::new();
        let refused = |said: Said| {
            assert_eq!(said.code, 1, "{args:?}: {}", said.stderr);
            assert!(said.stderr.contains("is a variable unset?"), "{args:?}: {}", said.stderr);
            assert!(!place.path("tidegate.db").exists());
        };
        refused(place.tidegate(&[args, &["--store", ""]].concat()));
        refused(place.command(args).env("TIDEGATE_STORE", "").output().unwrap().into());
        fs::write(place.path("tidegate.toml"), "store = ''\n").unwrap();
        refused(place.tidegate(args));
    }
}

#[test]
fn settings_behind_a_question_mark_make_no_file() {
    let place = Place::new();
    let store = format!("sqlite://{}?mode=rwc", place.path("s.db").display());
    let said = place.tidegate(&["publish", "a", "{}", "--store", &store]);
    assert!(said.code == 1 && said.stderr.contains("takes no settings"), "{}", said.stderr);
    assert!(place.files().is_empty());
}
