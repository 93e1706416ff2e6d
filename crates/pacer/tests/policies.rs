//! What the policies do that the pacer is compared with.

#![allow(clippy::unwrap_used, reason = "everything here is a test or serves one")]

use tidegate_pacer::scenario::{AnyPolicy, Patience, Report, Scenario};

fn run(policy: &str, service: &str) -> Report {
    let text = format!("name = \"x\"\n{service}\n[pacer]\nmax = 200\nstart = 1");
    let scenario: Scenario = text.parse().unwrap();
    scenario.run_as(policy.parse().unwrap(), Patience::default())
}

const LIMITED: &str = "requests = 2000\n[service]\ndelay = 0.1
    [service.concurrency]\nlimit = 20";

#[test]
fn vector_adds_one_per_round_trip_and_takes_a_tenth_off() {
    // With one more per round trip, twenty round trips do 210 requests.
    let report = run("vector", "requests = 210\n[service]\ndelay = 0.1");
    assert!((18.0..=22.0).contains(&report.limit.max), "{}", report.limit);
    let limited = run("vector", LIMITED);
    assert!((21.0..=23.0).contains(&limited.limit.max), "{}", limited.limit);
    assert!(limited.limit.mean > 16.0 && limited.rejects > 0, "{}", limited.limit);
}

#[test]
fn gradient2_grows_by_a_fifth_of_its_queue_per_window() {
    let report = run("gradient2", "requests = 1000\n[service]\ndelay = 0.1");
    let windows = report.makespan / 0.2;
    assert!((report.limit.max - 1.0 - 0.8 * windows).abs() < 3.0, "{}", report.limit);
    let limited = run("gradient2", LIMITED);
    assert!(limited.limit.max < 24.0 && limited.limit.mean > 14.0, "{}", limited.limit);
}

#[test]
fn vegas_shrinks_when_a_queue_grows() {
    let knee = "requests = 5000\n[service]\ndelay = 0.1
        [service.concurrency]\nknee_start = 20\nknee_exp = 1.05";
    let report = run("vegas", knee);
    assert!(report.efficiency() > 0.5 && report.limit.max < 120.0, "{report}");
}

#[test]
fn who_knows_a_limit_doubles_up_to_it_and_stops() {
    let report = run("bound:a", LIMITED);
    assert_eq!((report.rejects, report.limit.max), (0, 20.0));
    // 1 + 2 + 4 + 8 + 16 instead of 5 × 20, and then all of it.
    assert!(report.makespan < report.ideal + 0.5, "{}", report.makespan);
    let later = run("bound:b", LIMITED);
    assert!((later.makespan - report.makespan - 0.1).abs() < 1e-6, "{}", later.makespan);
}

#[test]
fn who_knows_a_service_with_latency_keeps_it_busy() {
    let service = "requests = 5000\n[service]\ndelay = 0.1\njitter = 0.3\nlatency = 0.02
        [service.concurrency]\nlimit = 20\naction = \"drop\"";
    let report = run("bound:a", service);
    assert_eq!(report.timeouts, 0);
    assert!(report.in_flight.max > 24.0 && report.efficiency() > 0.95, "{report}");
}

#[test]
fn nothing_is_sent_inside_a_retry_after() {
    let service = "requests = 2000\nconnections = 2\n[service]\ndelay = 0.1
        [service.concurrency]\nlimit = 5\nretry_after = 1.0";
    for policy in AnyPolicy::COMPARED.into_iter().chain(AnyPolicy::BOUNDS) {
        // A level that never falls is refused for ever.
        if policy.to_string() != "fixed:20" {
            let report = run(&policy.to_string(), service);
            assert_eq!(report.inside_retry_after, 0, "{policy}");
            assert_eq!(report.successes, 2000, "{policy}");
        }
    }
}

#[test]
fn policies_are_read_as_they_are_written() {
    for policy in AnyPolicy::COMPARED.into_iter().chain(AnyPolicy::BOUNDS) {
        assert_eq!(policy.to_string().parse(), Ok(policy));
    }
    let error = "vectors".parse::<AnyPolicy>().unwrap_err();
    assert!(error.contains("fixed:N") && error.contains("gradient2"), "{error}");
}

#[test]
fn a_restart_loses_no_request_of_another_policy() {
    let restarts = LIMITED.replacen("[service]", "restarts = [1.0, 5.0]\n[service]", 1);
    for policy in ["vector", "gradient2", "vegas", "bound:a"] {
        assert_eq!(run(policy, &restarts).successes, 2000, "{policy}");
    }
}
