//! `pace` and `drill`.

use crate::{
    support::{Place, signal},
    world::{lines, refused},
};
use serde_json::Value;
use std::io::{BufRead, BufReader};

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
