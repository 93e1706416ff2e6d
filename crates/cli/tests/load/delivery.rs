//! Every record arrives, at the pace of the destination.

use crate::{
    support::Said,
    world::{World, lines, refused},
};
use serde_json::Value;
use std::{io::Write, process::Stdio, time::Duration};
use tidegate_drill::{Concurrency, Spec};

#[test]
fn every_record_arrives_once() {
    let world = World::new(Spec { delay: Duration::from_millis(5), ..Spec::default() });
    world.place.write("in.ndjson", lines(1_000));
    let said = world.load(&["--group", "10", "--json"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let json = said.json();
    assert_eq!((json["completed"].as_u64(), json["dead"].as_u64()), (Some(1_000), Some(0)));
    assert_eq!(world.stored(), (1_000, 0));
    assert_eq!(json["sent"]["requests"].as_u64(), Some(100));
    let again = world.load(&["--group", "10"]);
    assert_eq!(again.code, 0);
    assert!(again.stderr.contains("was loaded before, as load 1: --again"), "{}", again.stderr);
    assert_eq!(world.stored(), (1_000, 0));
    assert_eq!(world.load(&["--group", "10", "--again"]).code, 0);
    assert_eq!(world.stored(), (1_000, 1_000));
}

#[test]
fn the_destination_sets_the_pace() {
    let world = World::new(Spec {
        // Long enough that what a busy machine adds to it does not look like the service's doing.
        delay: Duration::from_millis(200),
        concurrency: Some(Concurrency { limit: 4 }),
        retry_after: Some(Duration::from_secs(1)),
        ..Spec::default()
    });
    world.place.write("in.ndjson", lines(400));
    let said = world.load(&["--group", "10"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let counters = world.service.counters();
    assert_eq!((counters.records, counters.duplicates), (400, 0));
    assert_eq!(counters.inside_retry_after, 0);
    assert!(counters.throttled.total <= 10, "{}", counters.throttled.total);

    let shown = world.place.ok(&["pace"]);
    assert!(shown.contains("load 1 to http://127.0.0.1:"), "{shown}");
    assert!(shown.contains("throttled: more than"), "{shown}");
    let json = world.place.json(&["pace", "1"]);
    let pace = &json[0]["pace"];
    assert_eq!(pace["running"], Value::Bool(false));
    assert!(pace["statistics"][0]["ceiling"].as_u64().unwrap() <= 6);

    world.place.write("more.ndjson", lines(400).replace("somebody", "another"));
    let url = world.url();
    let args = ["load", "more.ndjson", "--to", &url, "--allow", "127.0.0.1", "--group", "10"];
    let before = world.service.counters().throttled.total;
    world.place.ok(&args);
    let shown = world.place.ok(&["pace"]);
    assert!(shown.contains("remembered from earlier"), "{shown}");
    assert!(world.service.counters().throttled.total - before <= 3);
}

#[test]
fn another_address_is_another_load() {
    let world = World::new(Spec::default());
    world.place.write("in.ndjson", lines(5));
    for (query, duplicates) in [("?tenant=a&key=s3cret", 0), ("?tenant=b", 5), ("?tenant=b", 5)] {
        let url = format!("{}{query}", world.url());
        let said = world.place.tidegate(&world.args(&url, &[]));
        assert_eq!((said.code, world.stored()), (0, (5, duplicates)), "{}", said.stderr);
        assert!(!said.stderr.contains("s3cret"), "{}", said.stderr);
    }
}

#[test]
fn every_format_is_read_also_from_stdin() {
    let world = World::new(Spec::default());
    let url = world.url();
    let to = ["--to", url.as_str(), "--allow", "127.0.0.1", "--group", "5"];
    world.place.write("a.csv", "id,name\n1,\"a, b\"\n2,c\n");
    world.place.write("b.json", "[{\"id\":3},\n {\"id\":4}]");
    for file in ["a.csv", "b.json"] {
        world.place.ok(&[["load", file].as_slice(), &to].concat());
    }
    assert_eq!(world.stored(), (4, 0));
    let mut command = world.place.command(&[["load", "-"].as_slice(), &to].concat());
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"{\"id\":5}\n{\"id\":6}\n").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(world.stored(), (6, 0));
}

#[test]
fn a_sink_has_a_name_in_the_settings() {
    let world = World::new(Spec { authorization: vec!["Bearer s3cret".into()], ..Spec::default() });
    world.place.write("in.ndjson", lines(10));
    let settings = format!(
        "[sinks.people]\nkind = 'http'\nurl = '{}'\nbody = 'ndjson'\nallow = ['127.0.0.1']\n\
         bearer = {{ env = 'PEOPLE_TOKEN' }}\n[sinks.people.pacer]\nmax = 3\n",
        world.url()
    );
    world.place.write("tidegate.toml", settings);
    let args = ["load", "in.ndjson", "--to", "people"];
    let with = |token: &str| -> Said {
        world.place.command(&args).env("PEOPLE_TOKEN", token).output().unwrap().into()
    };
    let wrong = with("wrong");
    assert!(wrong.code == 1 && wrong.stderr.contains("401"), "{}", wrong.stderr);
    assert_eq!(world.stored(), (0, 0));
    let said = with("s3cret");
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert_eq!(world.stored(), (10, 0));
    assert!(!said.stderr.contains("s3cret"));
    refused(&world.place.tidegate(&["load", "in.ndjson", "--to", "peple"]), "`people`");
}

/// A service that answers 429 to every request, for ever.
fn always_busy() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/records", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut request = [0; 4096];
            let _ = std::io::Read::read(&mut stream, &mut request);
            let _ = stream.write_all(
                b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            );
        }
    });
    url
}

#[test]
fn a_load_gives_up_when_nothing_is_taken_for_long() {
    let world = World::new(Spec::default());
    world.place.write("in.ndjson", lines(3));
    let url = always_busy();
    let said = world.place.tidegate(&world.args(&url, &["--give-up-after", "1s"]));
    assert_eq!(said.code, 3, "{}", said.stderr);
    assert!(said.stderr.contains("no record was taken for"), "{}", said.stderr);
    assert_eq!(said.stderr.matches("giving up").count(), 1, "{}", said.stderr);
    assert!(said.stdout.contains("load 1 stopped: 0 of 3 records"), "{}", said.stdout);
    assert!(said.stderr.contains("the same command goes on from here"), "{}", said.stderr);
    let both = ["--stalled-after", "500ms", "--give-up-after", "2s"];
    let said = world.place.tidegate(&world.args(&url, &both));
    assert_eq!(said.code, 3, "{}", said.stderr);
    assert_eq!(said.stderr.matches("going on\n").count(), 1, "{}", said.stderr);
    // Nothing is dead, and no attempt was used up.
    let shown = world.place.json(&["batch", "show", "1"]);
    assert_eq!(shown["dead"], 0, "{shown}");
    let said = world.place.tidegate(&world.args(&url, &["--give-up-after", "0s"]));
    assert_eq!(said.code, 2, "{}", said.stderr);
}

#[test]
fn errors_go_directly_to_what_is_no_file() {
    let world = World::new(Spec::default());
    world.place.write("in.ndjson", "{\"id\":1}\nnot a record\n");
    let said = world.load(&["--errors", "/dev/stdout"]);
    assert_eq!(said.code, 3, "{}", said.stderr);
    assert!(said.stdout.contains("not a record"), "{}", said.stdout);
    let said = world.load(&["--errors", "/dev/null", "--again"]);
    assert_eq!(said.code, 3, "{}", said.stderr);
    // What else is printed there stays.
    let out = std::fs::File::create(world.place.path("out")).unwrap();
    let url = world.url();
    let args = world.args(&url, &["--errors", "/dev/stdout", "--again", "--json"]);
    world.place.command(&args).stdout(out).status().unwrap();
    let out = std::fs::read_to_string(world.place.path("out")).unwrap();
    assert!(out.contains("not a record") && out.contains("\"state\""), "{out}");
}
