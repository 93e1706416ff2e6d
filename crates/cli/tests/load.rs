//! `tidegate load`, `pace` and `drill service`, over real sockets.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Write},
    net::Ipv4Addr,
    process::Stdio,
    time::Duration,
};
use support::{Place, Said, signal, wait_until};
use tidegate_drill::{Concurrency, Service, Spec};
use tokio::runtime::{Builder, Runtime};

/// A service in this process, and a place to load from.
struct World {
    place: Place,
    service: Service,
    _runtime: Runtime,
}

impl World {
    fn new(spec: Spec) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let _entered = runtime.enter();
        let service = Service::start(spec, (Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        drop(_entered);
        Self { place: Place::new(), service, _runtime: runtime }
    }

    fn url(&self) -> String {
        format!("{}/records", self.service.url())
    }

    fn args<'a>(&self, url: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        [["load", "in.ndjson", "--to", url, "--allow", "127.0.0.1"].as_slice(), more].concat()
    }

    fn load(&self, more: &[&str]) -> Said {
        let url = self.url();
        self.place.tidegate(&self.args(&url, more))
    }

    fn stored(&self) -> (u64, u64) {
        let counters = self.service.counters();
        (counters.records, counters.duplicates)
    }
}

fn lines(records: u64) -> String {
    (0..records).map(|id| format!("{{\"id\":{id},\"name\":\"somebody\"}}\n")).collect()
}

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
        delay: Duration::from_millis(20),
        concurrency: Some(Concurrency { limit: 4 }),
        retry_after: Some(Duration::from_secs(1)),
        ..Spec::default()
    });
    world.place.write("in.ndjson", lines(2_000));
    let said = world.load(&["--group", "10"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let counters = world.service.counters();
    assert_eq!((counters.records, counters.duplicates), (2_000, 0));
    assert_eq!(counters.inside_retry_after, 0);
    assert!(counters.throttled.total <= 10, "{}", counters.throttled.total);

    let shown = world.place.ok(&["pace"]);
    assert!(shown.contains("load 1 to http://127.0.0.1:"), "{shown}");
    assert!(shown.contains("throttled: more than"), "{shown}");
    let json = world.place.json(&["pace", "1"]);
    let pace = &json[0]["pace"];
    assert_eq!(pace["running"], Value::Bool(false));
    assert!(pace["statistics"][0]["ceiling"].as_u64().unwrap() <= 6);

    world.place.write("more.ndjson", lines(2_000).replace("somebody", "another"));
    let url = world.url();
    let args = ["load", "more.ndjson", "--to", &url, "--allow", "127.0.0.1", "--group", "10"];
    let before = world.service.counters().throttled.total;
    world.place.ok(&args);
    let shown = world.place.ok(&["pace"]);
    assert!(shown.contains("remembered from earlier"), "{shown}");
    assert!(world.service.counters().throttled.total - before <= 1);
}

#[test]
fn a_load_that_is_killed_goes_on() {
    let world = World::new(Spec { delay: Duration::from_millis(20), ..Spec::default() });
    world.place.write("in.ndjson", lines(20_000));
    let url = world.url();
    let args = world.args(&url, &["--group", "10", "--max", "8"]);
    for _ in 0..3 {
        let before = world.stored().0;
        let mut child = world.place.spawn(&args);
        wait_until("more is stored", || (world.stored().0 > before + 500).then_some(()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let said = world.place.tidegate(&args);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stderr.contains("going on with load 1"), "{}", said.stderr);
    let (records, duplicates) = world.stored();
    assert_eq!(records, 20_000);
    assert!(duplicates <= 3 * 8 * 10, "{duplicates}");
}

#[test]
fn a_stop_repeats_nothing() {
    let world = World::new(Spec { delay: Duration::from_millis(20), ..Spec::default() });
    world.place.write("in.ndjson", lines(20_000));
    let url = world.url();
    let args = world.args(&url, &["--group", "10"]);
    let child = world.place.spawn(&args);
    wait_until("some are stored", || (world.stored().0 > 100).then_some(()));
    signal(&child, "TERM");
    let said: Said = child.wait_with_output().unwrap().into();
    assert_eq!(said.code, 143, "{}", said.stderr);
    assert!(said.stderr.contains("the same command goes on from here"), "{}", said.stderr);
    assert_eq!(world.place.tidegate(&args).code, 0);
    assert_eq!(world.stored(), (20_000, 0));
}

#[test]
fn bad_records_are_set_aside_and_can_be_loaded_again() {
    for per_record_answers in [true, false] {
        let world = World::new(Spec { per_record_answers, ..Spec::default() });
        let mut text = lines(100);
        text += "{\"id\":100,\"bad\":true}\nno json\n{\"id\":102}\n";
        world.place.write("in.ndjson", text);
        let said = world.load(&["--group", "20", "--errors", "bad.ndjson"]);
        assert_eq!(said.code, 3, "{}", said.stderr);
        assert!(said.stderr.contains("in.ndjson, line 102:"), "{}", said.stderr);
        assert_eq!(world.stored(), (101, 0));
        let errors = std::fs::read_to_string(world.place.path("bad.ndjson")).unwrap();
        let errors: Vec<Value> =
            errors.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let line = |at: usize| errors[at]["tidegate_error"]["line"].as_u64();
        assert_eq!((errors.len(), line(0), line(1)), (2, Some(101), Some(102)));
        assert_eq!(errors[0]["record"]["id"], 100);
        assert!(errors[0]["tidegate_error"]["reason"].as_str().unwrap().contains("bad"));
        assert_eq!(errors[1]["tidegate_error"]["raw"], "no json");

        let corrected = std::fs::read_to_string(world.place.path("bad.ndjson")).unwrap();
        world.place.write("good.ndjson", corrected.replace("\"bad\":true", "\"good\":true"));
        let url = world.url();
        let said =
            world.place.tidegate(&["load", "good.ndjson", "--to", &url, "--allow", "127.0.0.1"]);
        assert_eq!(said.code, 3, "one is still malformed: {}", said.stderr);
        assert_eq!(world.stored(), (102, 0));
    }
}

#[test]
fn the_errors_file_never_harms_the_input() {
    let world = World::new(Spec::default());
    let text = lines(5);
    world.place.write("in.ndjson", &text);
    for place in ["in.ndjson", "./in.ndjson"] {
        refused(&world.load(&["--errors", place]), "--errors is the file that is loaded");
    }
    refused(&world.load(&["--errors", "no/such/place"]), "no/such/place");
    assert_eq!(std::fs::read_to_string(world.place.path("in.ndjson")).unwrap(), text);
    assert_eq!(world.stored(), (0, 0));
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
fn a_retry_after_outlives_the_process() {
    let world = World::new(Spec {
        delay: Duration::from_millis(20),
        concurrency: Some(Concurrency { limit: 2 }),
        retry_after: Some(Duration::from_secs(3)),
        ..Spec::default()
    });
    world.place.write("in.ndjson", lines(100));
    let url = world.url();
    let args = world.args(&url, &[]);
    let mut child = world.place.spawn(&args);
    wait_until("the Retry-After is written down", || {
        let said = world.place.tidegate(&["pace", "--json"]);
        let paces: Value = serde_json::from_str(&said.stdout).ok()?;
        let remembered = &paces[0]["pace"]["remembered"][0]["retry_after"];
        remembered.as_f64().filter(|seconds| *seconds > 0.0)
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let said = world.place.tidegate(&args);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert_eq!(world.service.counters().inside_retry_after, 0);
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
fn a_dry_run_sends_nothing() {
    let world = World::new(Spec::default());
    world.place.write("in.ndjson", lines(10));
    let said = world.load(&["--dry-run", "--group", "5"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stdout.contains("10 records of ndjson, 0 malformed"), "{}", said.stdout);
    assert!(said.stdout.contains("up to 5 per request"), "{}", said.stdout);
    assert_eq!(world.stored(), (0, 0));
    assert!(!world.place.path("tidegate.db").exists());
}

/// Whatever is wrong: one line, an exit code, nothing sent.
#[test]
fn bad_input_is_refused_in_one_line() {
    let world = World::new(Spec::default());
    let url = world.url();
    world.place.write("in.ndjson", lines(10));
    world.place.write("empty.ndjson", "\n\n");
    world.place.write("broken.ndjson", "{\"id\":1}\n{\"id\":\n");
    world.place.write("what.xyz", "a b c");
    let local = ["--to", url.as_str(), "--allow", "127.0.0.1"];
    let cases: [(&[&str], &str); 12] = [
        (&["empty.ndjson"], "empty.ndjson has no records"),
        (&["missing.ndjson"], "missing.ndjson"),
        (&["what.xyz"], "--format"),
        (&["broken.ndjson", "--strict"], "line 2:"),
        (&["in.ndjson", "--bearer-env", "NO_SUCH_VARIABLE"], "NO_SUCH_VARIABLE"),
        (&["in.ndjson", "--bearer-file", "no-such-file"], "no-such-file"),
        (&["in.ndjson", "--header", "nonsense"], "is no header"),
        (&["in.ndjson", "--max", "0"], "--max"),
        (&["in.ndjson", "--policy", "wild"], "full, seed, fixed:N"),
        (&["in.ndjson", "--format", "xml"], "xml"),
        (&["in.ndjson", "--body", "item", "--group", "5"], "--group"),
        (&["in.ndjson", "--rate", "0"], "rate = 0"),
    ];
    for (args, expected) in cases {
        let args = [["load"].as_slice(), args, &local].concat();
        refused(&world.place.tidegate(&args), expected);
    }
    refused(&world.place.tidegate(&["load", "in.ndjson", "--to", &url]), "add it to --allow");
    refused(&world.place.tidegate(&["load", "in.ndjson", "--to", "crm"]), "no sink `crm`");
    let nobody = ["load", "in.ndjson", "--to", "http://127.0.0.1:1/", "--allow", "127.0.0.1"];
    refused(&world.place.tidegate(&nobody), "127.0.0.1:1");
    assert_eq!(world.stored(), (0, 0));
}

fn refused(said: &Said, expected: &str) {
    assert!([1, 2].contains(&said.code), "{}: {}", said.code, said.stderr);
    assert_eq!(said.stderr.lines().count(), 1, "{}", said.stderr);
    assert!(said.stderr.contains(expected), "{expected}: {}", said.stderr);
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

#[test]
fn the_drill_service_counts() {
    let place = Place::new();
    let mut child = place.spawn(&["drill", "service", "--concurrency", "3", "--json"]);
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let url = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
    let url = url.trim_end_matches("/counters;");
    place.write("in.ndjson", lines(50));
    place.ok(&["load", "in.ndjson", "--to", &format!("{url}/records"), "--allow", "127.0.0.1"]);
    signal(&child, "INT");
    let mut counters = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut counters).unwrap();
    let counters: Value = serde_json::from_str(&counters).unwrap();
    assert_eq!(counters["records"].as_u64(), Some(50));
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_scenario_is_simulated() {
    let place = Place::new();
    place.write(
        "five.toml",
        "name = 'five'\nrequests = 500\n[service]\ndelay = 0.1\n[service.concurrency]\nlimit = 5\n\
         [pacer]\nmax = 200\n[expect]\nmakespan = [10.0, 13.0]\nrejects = [0, 25]\n",
    );
    let said = place.ok(&["pace", "simulate", "five.toml", "--log"]);
    assert!(said.contains("makespan") && said.contains("more than 5 in flight"), "{said}");
    let json = place.json(&["pace", "simulate", "five.toml"]);
    assert_eq!(json["successes"].as_f64(), Some(500.0));
    let fixed = place.tidegate(&["pace", "simulate", "five.toml", "--policy", "fixed:52"]);
    assert_eq!(fixed.code, 1);
    assert!(fixed.stderr.contains("unmet: rejects"), "{}", fixed.stderr);
    place.write("bad.toml", "name = 'x'");
    refused(&place.tidegate(&["pace", "simulate", "bad.toml"]), "requests");
    refused(&place.tidegate(&["pace"]), "tidegate.db");
}
