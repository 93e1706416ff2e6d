//! Sinks that cannot take messages are seen where people look.

use crate::support::{Place, Said, signal, wait_until};
use std::{
    io::{Read, Write},
    net::TcpListener,
    process::Command,
};

/// A configuration with one file sink.
fn file(path: &str) -> String {
    format!("[sinks.f]\nkind = 'file'\npath = '{path}'\n[[routes]]\ntopic = '*'\nsink = 'f'\n")
}

#[test]
fn what_cannot_be_a_file_is_refused_by_check_and_at_start() {
    let place = Place::new();
    place.ok(&["publish", "a", "{}"]);
    std::fs::create_dir(place.path("directory")).unwrap();
    assert!(Command::new("mkfifo").arg(place.path("pipe")).status().unwrap().success());
    for (path, expect) in [
        ("directory", "is a directory"),
        ("no/such/file", "not a directory: create it"),
        ("pipe", "is a pipe"),
    ] {
        place.write("tidegate.toml", file(path));
        let check = place.tidegate(&["check"]);
        let flat = check.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(check.code == 1 && flat.contains(expect), "{path}: {}", check.stdout);
        let relay = place.tidegate(&["relay", "--drain"]);
        assert!(relay.code == 1 && relay.stderr.contains(expect), "{path}: {}", relay.stderr);
    }
    place.write("tidegate.toml", file("/dev/full"));
    let args = ["relay", "--drain", "--give-up-after", "1s"];
    let said = place.tidegate(&args);
    assert_eq!(said.code, 3, "{}", said.stderr);
    assert!(said.stderr.contains("f cannot take messages"), "{}", said.stderr);
}

/// A port that nobody listens on.
fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn a_sink_that_is_down_is_seen_and_a_drain_gives_up() {
    let place = Place::new();
    place.write(
        "tidegate.toml",
        format!(
            "[sinks.crm]\nkind = 'http'\nurl = 'http://127.0.0.1:{}/'\nallow = ['127.0.0.1']\n\
             [[routes]]\ntopic = '*'\nsink = 'crm'\n",
            closed_port()
        ),
    );
    place.ok(&["publish", "a", "{}"]);
    let relay = place.spawn(&["relay", "--lease", "3s"]);
    let status = wait_until("the sink is seen as down", || {
        let status = place.json(&["outbox", "status"]);
        (status["sinks"][0]["sink"] == "crm").then_some(status)
    });
    assert_eq!(status["sinks"][0]["state"], "down");
    assert!(!status["sinks"][0]["reason"].as_str().unwrap().is_empty(), "{status}");
    let doctor = place.tidegate(&["doctor"]);
    assert!(doctor.code == 1 && doctor.stdout.contains("the sink crm has been in trouble for"));
    let told = place.tidegate(&["outbox", "status"]).stderr;
    assert!(told.contains("the sink crm has been in trouble for"), "{told}");
    // A relay that is killed says nothing any more, and is not believed for ever.
    signal(&relay, "KILL");
    relay.wait_with_output().unwrap();
    wait_until("what the dead relay said is forgotten", || {
        place.json(&["outbox", "status"])["sinks"].as_array().unwrap().is_empty().then_some(())
    });
    let args = ["relay", "--drain", "--give-up-after", "1s", "--lease", "3s"];
    let said: Said = place.command(&args).output().unwrap().into();
    assert_eq!(said.code, 3, "{}", said.stderr);
    let gave_up = said.stderr.lines().find(|it| it.contains("gave up: nothing was delivered for"));
    assert!(gave_up.unwrap().contains("; crm cannot take messages"), "{}", said.stderr);
    let after = place.json(&["outbox", "status"]);
    assert_eq!((&after["outstanding"], after["sinks"].as_array().unwrap().len()), (&1.into(), 0));
    assert_eq!(place.tidegate(&["relay", "--give-up-after", "1s"]).code, 2, "only for a drain");
}

/// A service that answers everything with 429. Returns its port.
fn always_busy() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(
                b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            );
        }
    });
    port
}

#[test]
fn a_sink_that_puts_everything_off_is_seen_and_a_drain_gives_up() {
    let place = Place::new();
    place.write(
        "tidegate.toml",
        format!(
            "stalled_after = '1s'\n[sinks.crm]\nkind = 'http'\nurl = 'http://127.0.0.1:{}/'\n\
             allow = ['127.0.0.1']\n[[routes]]\ntopic = '*'\nsink = 'crm'\n",
            always_busy()
        ),
    );
    place.ok(&["publish", "a", "{}"]);
    let relay = place.spawn(&["relay", "--lease", "3s"]);
    let status = wait_until("the sink is seen as stalled", || {
        let status = place.json(&["outbox", "status"]);
        (status["sinks"][0]["sink"] == "crm").then_some(status)
    });
    assert!(status["sinks"][0]["reason"].as_str().unwrap().contains("429"), "{status}");
    assert!(status["sinks"][0]["seconds"].as_f64().unwrap() >= 1.0, "{status}");
    let expect = "the sink crm has been in trouble for";
    let doctor = place.tidegate(&["doctor"]);
    assert!(doctor.code == 1 && doctor.stdout.contains(expect), "{}", doctor.stdout);
    let pace = place.ok(&["pace"]);
    assert!(pace.contains(expect) && pace.contains("429"), "{pace}");
    assert_eq!(place.json(&["pace"])[0]["sink"], "crm");
    signal(&relay, "TERM");
    let said: Said = relay.wait_with_output().unwrap().into();
    assert_eq!(said.stderr.matches("crm has put messages off for").count(), 1, "{}", said.stderr);
    for more in [&[][..], &["--stalled-after", "1h"]] {
        let drain = ["relay", "--drain", "--give-up-after", "1s", "--lease", "3s"];
        let said = place.tidegate(&[&drain[..], more].concat());
        assert_eq!(said.code, 3, "{}", said.stderr);
        assert!(said.stderr.contains("gave up: nothing was delivered for"), "{}", said.stderr);
        assert!(said.stderr.contains("crm has put messages off for"), "{}", said.stderr);
    }
    let after = place.json(&["outbox", "status"]);
    assert_eq!((&after["outstanding"], after["sinks"].as_array().unwrap().len()), (&1.into(), 0));
}
