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
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut json = || -> Value { serde_json::from_str(&said.next().unwrap().unwrap()).unwrap() };
    let url = json()["url"].as_str().unwrap().to_owned();
    place.write("in.ndjson", lines(50));
    place.ok(&["load", "in.ndjson", "--to", &url, "--allow", "127.0.0.1"]);
    signal(&child, "INT");
    let counters = json();
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
    let service = "name = 'x'\nrequests = 5\n[service]\ndelay = 0.1\n";
    for (text, problem) in [
        ("name = 'x'".to_owned(), "requests"),
        (format!("{service}colour = 3"), "at line 5 column 1"),
        (format!("{service}[expect]\nspeed = 1"), "`speed` is none of"),
        (format!("{service}[expect]\nmakespan = [13, 10]"), "nothing is at least 13"),
        (format!("{service}[service.rate]\nlimit = 0"), "limit:"),
    ] {
        place.write("bad.toml", text);
        refused(&place.tidegate(&["pace", "simulate", "bad.toml"]), problem);
    }
    for flags in [["--hint", "0"], ["--max-group", "0"], ["--fail-share", "2"]] {
        let args = [["drill", "service"], flags].concat();
        refused(&place.tidegate(&args), "use ");
    }
    refused(&place.tidegate(&["pace"]), "tidegate.db");
}
