//! Bad input gets one clear line and a non-zero exit code, and changes nothing.

mod support;

use std::fs;
use support::{Place, Said, foreign_database};

/// The error is one line with `expect` in it, and no file is changed.
fn refused_in(place: &Place, args: &[&str], expect: &str) {
    let before = place.files();
    let said = place.tidegate(args);
    assert_eq!(said.code, 1, "{args:?}: {}", said.stderr);
    let lines: Vec<_> = said.stderr.lines().collect();
    let [line] = lines[..] else { panic!("{args:?}: not one line: {}", said.stderr) };
    assert!(line.starts_with("error: ") && line.contains(expect), "{args:?}: {line}");
    assert_eq!(said.stdout, "", "{args:?}");
    assert!(place.files() == before, "{args:?} changed a file");
}

fn refused(args: &[&str], expect: &str) {
    refused_in(&Place::new(), args, expect);
}

#[test]
fn unknown_workload() {
    let expect = "there is no workload `bigno`; did you mean `bingo`?";
    refused(&["run", "bigno", "--runs", "10"], expect);
    refused(&["submit", "bigno", "--runs", "10"], expect);
    refused(&["workload", "show", "bigno"], expect);
}

#[test]
fn unknown_program() {
    refused(&["run", "--exec", "no-such-program", "--runs", "1"], "`no-such-program`");
    refused(&["worker", "--exec", "'open", "--until-idle"], "a quote is not closed");
}

#[test]
fn malformed_snapshot() {
    let place = Place::new();
    place.write("wrong.json", r#"{"fail": "often"}"#);
    place.write("much.toml", "fail = 2.0\n");
    place.write("broken.toml", "fail = \n");
    place.write("broken.json", "{\"fail\": \n}");
    let snapshot = |name: &str, expect: &str| {
        refused_in(&place, &["run", "flaky", "--runs", "1", "--snapshot", name], expect);
    };
    snapshot("wrong.json", "invalid snapshot at `fail`: invalid type: string \"often\"");
    snapshot("much.toml", "invalid snapshot at `fail`: 2 is no share");
    snapshot("broken.toml", "the snapshot `broken.toml` is malformed");
    snapshot("broken.json", "at line 2 column 1");
    snapshot("missing.toml", "cannot read the snapshot `missing.toml`");
}

#[test]
fn zero_runs() {
    refused(&["run", "noop", "--runs", "0"], "a batch has 1 to");
    refused(&["submit", "noop", "--runs", "0"], "a batch has 1 to");
    refused(&["run", "noop", "--runs", "1", "--max-attempts", "0"], "at least one attempt");
}

#[test]
fn store_address_with_a_typo() {
    let typo = "postgre://tide:secret@db/tide";
    let expect = "`postgre:` is no kind of store; did you mean `postgres`?";
    refused(&["run", "noop", "--runs", "1", "--store", typo], expect);
    refused(&["run", "noop", "--runs", "1", "--store", "tide.db"], "write sqlite:tide.db");
    refused(&["run", "noop", "--runs", "1", "--store", "sqlite:no/such/a.db"], "no directory");
    refused(&["run", "noop", "--runs", "1", "--store", "memory:tide"], "takes no name");
}

#[test]
fn unreachable_store() {
    let nobody = "postgres://tide:secret@127.0.0.1:1/tide";
    for args in [["run", "noop", "--runs", "1"].as_slice(), &["batch", "list"], &["worker"]] {
        let place = Place::new();
        let args = [args, &["--store", nobody]].concat();
        refused_in(&place, &args, "127.0.0.1");
        assert!(!place.tidegate(&args).stderr.contains("secret"));
    }
}

#[test]
fn a_store_that_is_not_there_is_not_created_by_looking() {
    for args in [["batch", "list"].as_slice(), &["batch", "show", "1"], &["worker", "--until-idle"]]
    {
        refused(args, "there is no store at `tidegate.db`");
    }
}

#[test]
fn read_only_store() {
    let place = Place::new();
    place.ok(&["submit", "noop", "--runs", "1"]);
    let file = place.path("tidegate.db");
    let mut permissions = fs::metadata(&file).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&file, permissions).unwrap();
    refused_in(&place, &["run", "noop", "--runs", "1"], "is read-only");
    refused_in(&place, &["worker", "--until-idle"], "is read-only");
}

#[test]
fn a_file_that_is_no_database() {
    let place = Place::new();
    place.write("tidegate.db", "These are my notes, not a database.");
    refused_in(&place, &["run", "noop", "--runs", "1"], "is no SQLite database");
    refused_in(&place, &["migrate"], "is no SQLite database");
}

#[test]
fn a_database_of_somebody_else() {
    let place = Place::new();
    foreign_database(&place.path("tidegate.db"));
    refused_in(&place, &["run", "noop", "--runs", "1"], "another program's SQLite database");
}

#[test]
fn a_store_without_a_schema() {
    let place = Place::new();
    place.write("tidegate.db", "");
    refused_in(&place, &["batch", "list"], "no schema yet: run `tidegate migrate`");
}

#[test]
fn unknown_batch_and_run() {
    let place = Place::new();
    place.ok(&["run", "noop", "--runs", "10"]);
    for command in ["show", "watch", "results"] {
        refused_in(&place, &["batch", command, "9"], "there is no batch 9");
    }
    for command in ["cancel", "retry"] {
        let said = place.tidegate(&["batch", command, "9"]);
        assert!(said.code == 1 && said.stderr.contains("there is no batch 9"), "{}", said.stderr);
    }
    refused_in(&place, &["worker", "--batch", "9"], "there is no batch 9");
    refused_in(&place, &["batch", "replay", "9#1"], "there is no batch 9");
    refused_in(&place, &["batch", "replay", "1"], "`1` is no run: write BATCH#INDEX");
    refused_in(&place, &["batch", "replay", "1#x"], "`1#x` is no run");
    refused_in(&place, &["batch", "replay", "1#10"], "has the runs 0 to 9; there is no run 10");
    refused_in(&place, &["batch", "results", "1", "--from", "10"], "there is no run 10");
}

#[test]
fn a_memory_store_is_for_run_alone() {
    for args in [["worker"].as_slice(), &["submit", "noop", "--runs", "1"], &["batch", "list"]] {
        refused(&[args, &["--store", "memory:"]].concat(), "only `tidegate run` can use it");
    }
}

#[test]
fn settings_that_are_not_understood() {
    let place = Place::new();
    place.write("tidegate.toml", "thread = 4\n");
    let expect = "cannot use `tidegate.toml`: `thread` is no setting; did you mean `threads`?";
    refused_in(&place, &["run", "noop", "--runs", "1"], expect);
    refused(&["run", "noop", "--runs", "1", "--config", "no.toml"], "cannot read `no.toml`");
}

#[test]
fn wrong_usage_has_its_own_code() {
    let place = Place::new();
    for args in [
        ["run", "noop"].as_slice(),
        &["run", "--runs", "1"],
        &["run", "noop", "--exec", "cat", "--runs", "1"],
        &["run", "noop", "--runs", "many"],
        &["run", "noop", "--runs", "1", "--lease", "30"],
        &["run", "noop", "--runs", "1", "--threads", "0"],
        &["run", "noop", "--runs", "1", "--keep", "some"],
        &["batch", "list", "--state", "done"],
        &["run", "noop", "--runs", "1", "--range-length", "0"],
        &["run", "noop", "--runs", "1", "--keep", "sample:0"],
        &["no-such-command"],
    ] {
        let Said { code, stdout, stderr } = place.tidegate(args);
        assert_eq!((code, stdout.as_str()), (2, ""), "{args:?}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(stderr.starts_with("error: ") && stderr.contains("see --help"), "{stderr}");
    }
    let typo = place.tidegate(&["run", "noop", "--rnus", "1"]).stderr;
    assert!(typo.contains("; a similar argument exists: '--runs'"), "{typo}");
    assert!(place.files().is_empty());
}
