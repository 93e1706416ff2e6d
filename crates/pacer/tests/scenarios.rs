//! Every scenario file holds what it promises.

#![allow(clippy::unwrap_used, reason = "everything here is a test or serves one")]

use std::{fs, path::Path};
use tidegate_pacer::{Policy, scenario::Scenario};

fn scenarios(folder: &str) -> Vec<(String, Scenario)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(folder);
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |path: &std::path::PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let scenario = fs::read_to_string(path).unwrap().parse();
        (name.clone(), scenario.unwrap_or_else(|error| panic!("{name}: {error}")))
    };
    files.iter().map(read).collect()
}

fn check(folder: &str) {
    let unmet: Vec<String> = scenarios(folder)
        .iter()
        .flat_map(|(name, scenario)| {
            assert!(!scenario.expect.is_empty(), "{name} expects nothing");
            let unmet = scenario.expect.check(&scenario.run()).err().unwrap_or_default();
            unmet.into_iter().map(move |unmet| format!("{name}: {unmet}"))
        })
        .collect();
    assert!(unmet.is_empty(), "{}", unmet.join("\n"));
}

#[test]
fn the_goals_are_reached() {
    check("goals");
}

#[test]
fn what_is_known_to_fail_does_not() {
    check("lessons");
}

#[test]
fn a_scenario_always_ends_the_same_way() {
    let (_, scenario) = scenarios("goals").into_iter().find(|(name, _)| name == "jitter").unwrap();
    assert_eq!(scenario.run(), scenario.run());
}

#[test]
fn other_policies_are_behind() {
    let (_, scenario) =
        scenarios("lessons").into_iter().find(|(name, _)| name.starts_with("05")).unwrap();
    let run = |policy| {
        let mut scenario = scenario.clone();
        scenario.pacer.policy = policy;
        scenario.run()
    };
    let full = run(Policy::Full);
    for policy in [Policy::Seed, Policy::Fixed(52)] {
        let other = run(policy);
        assert!(other.makespan > 1.5 * full.makespan, "{policy}: {}", other.makespan);
        assert!(other.rejects > 2 * full.rejects, "{policy}: {}", other.rejects);
    }
}

#[test]
fn a_file_that_is_no_scenario_says_why() {
    let error = |text: &str| text.parse::<Scenario>().unwrap_err().to_string();
    let head = "name = \"x\"\nrequests = 5\n";
    assert!(error("name = \"x\"").contains("requests"));
    assert!(error(&format!("{head}[service]\ndelay = 0.1\nlimits = 5")).contains("limits"));
    assert!(error(&format!("{head}[service]\ndelay = 0.0")).contains("more than 0"));
    assert!(error(&format!("{head}[service]\ndelay = -1.0")).contains("seconds"));
    assert!(error(&format!("{head}[service]\ndelay = 1.0\n[pacer]\nmax = 0")).contains("max = 0"));
    let unknown = error(&format!("{head}[service]\ndelay = 1.0\n[expect]\nmakepan = 1.0"));
    assert!(unknown.contains("makespan"), "{unknown}");
}
