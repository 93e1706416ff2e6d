//! No output is written to the store, the input or the configuration.

use crate::support::{Place, Said};
use std::{
    fs::{self, OpenOptions},
    os::unix::fs::{PermissionsExt, symlink},
};

/// A store with a message in it, an input and a configuration.
fn world(config: &str) -> Place {
    let place = Place::new();
    place.ok(&["publish", "orders", "{\"n\":1}", "--store", "sqlite:s.db"]);
    place.write("in.ndjson", "{\"n\":1}\n");
    place.write("tidegate.toml", config);
    place
}

fn outstanding(place: &Place) -> u64 {
    let status = place.json(&["outbox", "status", "--store", "sqlite:s.db"]);
    status["outstanding"].as_u64().unwrap()
}

/// Different ways to write the path of a file in the directory of a test.
fn spellings(place: &Place, name: &str) -> Vec<String> {
    fs::create_dir_all(place.path("sub")).unwrap();
    let (soft, hard) = (place.path(&format!("soft-{name}")), place.path(&format!("hard-{name}")));
    let chain = place.path(&format!("sub/chain-{name}"));
    symlink(name, &soft).unwrap();
    symlink(&soft, &chain).unwrap();
    let mut paths = vec![
        name.to_owned(),
        format!("./{name}"),
        format!("sub/../{name}"),
        format!(".//sub/.././{name}"),
        place.path(name).display().to_string(),
        soft.display().to_string(),
        chain.display().to_string(),
    ];
    if fs::hard_link(place.path(name), &hard).is_ok() {
        paths.push(hard.display().to_string());
    }
    paths
}

fn refused(place: &Place, args: &[&str], expect: &str) {
    let said = place.tidegate(args);
    assert_eq!(said.code, 1, "{args:?}: {}", said.stderr);
    assert!(said.stderr.contains(expect), "{args:?}: {}", said.stderr);
}

#[test]
fn errors_are_never_written_over_what_is_needed() {
    let place = world("");
    let absolute = format!("sqlite://{}", place.path("s.db").display());
    let load = ["load", "in.ndjson", "--to", "http://127.0.0.1:1/", "--allow", "127.0.0.1"];
    for (name, what) in [
        ("s.db", "the store"),
        ("s.db-wal", "the store"),
        ("s.db-shm", "the store"),
        ("s.db-journal", "the store"),
        ("in.ndjson", "the input"),
        ("tidegate.toml", "the configuration file"),
    ] {
        for path in spellings(&place, name) {
            for store in ["sqlite:s.db", "sqlite:./s.db", "sqlite:sub/../s.db", &absolute] {
                let args = [&load[..], &["--store", store, "--errors", &path]].concat();
                refused(&place, &args, &format!("--errors is {what}"));
            }
        }
    }
    assert_eq!(outstanding(&place), 1);
}

#[test]
fn what_is_read_from_stdin_is_never_written_to() {
    let place = world("");
    let before = fs::read(place.path("in.ndjson")).unwrap();
    let with_stdin = |args: &[&str], name: &str| -> Said {
        let stdin = fs::File::open(place.path(name)).unwrap();
        place.command(args).stdin(stdin).output().unwrap().into()
    };
    let load = ["load", "-", "--to", "http://127.0.0.1:1/", "--allow", "127.0.0.1"];
    for path in spellings(&place, "in.ndjson") {
        let said = with_stdin(&[&load[..], &["--errors", &path]].concat(), "in.ndjson");
        assert_eq!(said.code, 1, "{path}: {}", said.stderr);
        assert!(said.stderr.contains("--errors is the input"), "{path}: {}", said.stderr);
    }
    let store = ["--store", "sqlite:s.db"];
    let said = with_stdin(&[&load[..], &store[..]].concat(), "s.db");
    assert!(said.code == 1 && said.stderr.contains("stdin is the store"), "{}", said.stderr);
    let appended = OpenOptions::new().append(true).open(place.path("in.ndjson")).unwrap();
    let mut publish =
        place.command(&[&["publish", "orders", "--lines", "--json"], &store[..]].concat());
    publish.stdin(fs::File::open(place.path("in.ndjson")).unwrap()).stdout(appended);
    let said: Said = publish.output().unwrap().into();
    assert!(
        said.code == 1 && said.stderr.contains("stdout is sent to the input"),
        "{}",
        said.stderr
    );
    assert_eq!(fs::read(place.path("in.ndjson")).unwrap(), before);
    assert_eq!(outstanding(&place), 1);
}

#[test]
fn files_that_the_address_of_the_store_names_are_never_written_to() {
    let place = world("");
    for name in ["ca.pem", "client.pem", "client.key"] {
        place.write(name, "precious");
    }
    let address = "host=127.0.0.1 port=1 dbname=x sslmode=verify-full sslrootcert=ca.pem \
                   sslcert=client.pem sslkey=client.key";
    let load = ["load", "in.ndjson", "--to", "http://127.0.0.1:1/", "--allow", "127.0.0.1"];
    for path in ["ca.pem", "client.pem", "./client.key"] {
        let args = [&load[..], &["--store", address, "--errors", path]].concat();
        refused(&place, &args, "--errors is a file of the store's address");
    }
}

#[test]
fn errors_go_to_a_file() {
    let place = world("");
    let load = ["load", "in.ndjson", "--to", "http://127.0.0.1:1/", "--allow", "127.0.0.1"];
    refused(&place, &[&load[..], &["--errors", "."]].concat(), "it is not a file");
}

#[test]
fn a_new_store_behind_links_is_for_its_owner_only() {
    let place = Place::new();
    for (link, target) in [("a", "b"), ("b", "c"), ("c", "store.db")] {
        symlink(target, place.path(link)).unwrap();
    }
    place.ok(&["migrate", "--store", "sqlite:a"]);
    let mode = fs::metadata(place.path("store.db")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn the_store_is_no_input() {
    let place = world("");
    let args = ["load", "s.db", "--to", "http://127.0.0.1:1/", "--store", "sqlite:s.db"];
    refused(&place, &args, "`s.db` is the store");
    assert_eq!(outstanding(&place), 1);
}

#[test]
fn a_sink_never_writes_to_the_store_or_the_configuration() {
    for (name, what) in [
        ("s.db", "the store"),
        ("s.db-wal", "the store"),
        ("tidegate.toml", "the configuration file"),
    ] {
        let place = world("");
        for path in spellings(&place, name) {
            let config = format!(
                "[sinks.f]\nkind = 'file'\npath = '{path}'\n[[routes]]\ntopic = '*'\nsink = 'f'\n"
            );
            place.write("tidegate.toml", &config);
            let expect = format!("`path` is {what}");
            refused(&place, &["relay", "--drain", "--store", "sqlite:s.db"], &expect);
            refused(&place, &["check", "--store", "sqlite:s.db"], &expect);
            assert_eq!(fs::read_to_string(place.path("tidegate.toml")).unwrap(), config);
        }
        assert_eq!(outstanding(&place), 1);
    }
}

#[test]
fn a_topic_never_leads_a_sink_to_the_store() {
    let place = world(
        "[sinks.f]\nkind = 'file'\npath = '{topic}.db'\n[[routes]]\ntopic = '*'\nsink = 'f'\n",
    );
    for topic in ["s", "other"] {
        place.ok(&["publish", topic, "{}", "--store", "sqlite:s.db"]);
    }
    let said = place.tidegate(&["relay", "--drain", "--store", "sqlite:s.db"]);
    assert_eq!(said.code, 3, "{}", said.stderr);
    let dead = place.json(&["outbox", "dead", "--store", "sqlite:s.db"]);
    assert_eq!(dead[0]["topic"], "s", "{dead}");
    assert!(dead[0]["reason"].as_str().unwrap().contains("would be the store"), "{dead}");
    assert!(place.path("other.db").exists() && place.path("orders.db").exists());
}

#[test]
fn output_that_a_shell_sends_to_the_store_is_refused() {
    let place = world("");
    let before = fs::read(place.path("s.db")).unwrap();
    let into = |name: &str| OpenOptions::new().append(true).open(place.path(name)).unwrap();
    let status = ["outbox", "status", "--json", "--store", "sqlite:s.db"];
    let said: Said = place.command(&status).stdout(into("s.db")).output().unwrap().into();
    assert!(
        said.code == 1 && said.stderr.contains("stdout is sent to the store"),
        "{}",
        said.stderr
    );
    assert_eq!(fs::read(place.path("s.db")).unwrap(), before);
    let said: Said = place.command(&status).stdout(into("in.ndjson")).output().unwrap().into();
    assert_eq!(said.code, 0, "{}", said.stderr);
}

#[test]
fn archives_are_for_their_owner_and_replace_nothing_else() {
    let place = world("[[routes]]\ntopic = '*'\nsink = 'stdout'\n");
    let store = ["--store", "sqlite:s.db"];
    place.ok(&[&["relay", "--drain"], &store[..]].concat());
    refused(&place, &[&["outbox", "archive", "no/such"], &store[..]].concat(), "cannot archive");
    let archived = place.json(&[&["outbox", "archive", "sent"], &store[..]].concat());
    let file = place.path(archived["files"][0].as_str().unwrap());
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
}
