//! What a simulated service does, and what the ideal is there.

#![allow(clippy::unwrap_used, reason = "everything here is a test or serves one")]

use tidegate_pacer::scenario::{Report, Scenario};

/// Runs a scenario with so many in flight, all the time.
fn run(policy: &str, text: &str) -> Report {
    let head = "name = \"x\"\n";
    let mut scenario: Scenario = format!("{head}{text}").parse().unwrap();
    scenario.pacer.policy = policy.parse().unwrap();
    scenario.run()
}

fn close(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-6, "{value}, expected {expected}");
}

#[test]
fn latency_is_part_of_the_round_trip() {
    let report = run("fixed:5", "requests = 100\n[service]\ndelay = 0.1\nlatency = 0.02");
    close(report.rtt.min, 0.14);
    close(report.rtt.max, 0.14);
    close(report.makespan, 20.0 * 0.14);
}

#[test]
fn a_service_is_not_busy_with_what_is_on_its_way() {
    let service = "requests = 70\n[service]\ndelay = 0.1\nlatency = 0.02\n";
    // Seven in flight, but five of them in the service: with latency 0, two would be rejected.
    let limited = format!("{service}[service.concurrency]\nlimit = 7");
    assert_eq!(run("fixed:7", &limited).rejects, 0);
    close(run("fixed:7", &limited).ideal, 10.0 * 0.1 + 0.04);
    // The sender may be what holds requests back, as those on their way count for it.
    close(run("fixed:7", &format!("{service}[pacer]\nmax = 7")).ideal, 10.0 * 0.14 + 0.04);
}

#[test]
fn a_request_with_latency_times_out_when_it_would_without() {
    let text = "requests = 1\ntimeout = 0.13\n[service]\ndelay = 0.1\nlatency = 0.02
        [[change]]\nat = 1.0\ndelay = 0.05";
    let report = run("fixed:1", text);
    close(report.makespan, 8.0 * 0.13 + 0.09);
    assert_eq!(report.timeouts, 8);
}

#[test]
fn an_outage_rejects_or_answers_nothing() {
    let outage = |action| {
        format!(
            "requests = 20\ntimeout = 0.5\n[service]\ndelay = 0.1
            [service.concurrency]\nlimit = 2
            [[change]]\nat = 0.5\nconcurrency = {{ limit = 0, action = \"{action}\" }}
            [[change]]\nat = 2.0\nconcurrency = {{ limit = 2 }}"
        )
    };
    let rejecting = run("fixed:2", &outage("defer"));
    close(rejecting.ideal, 2.5);
    close(rejecting.makespan, 2.5);
    assert_eq!((rejecting.rejects, rejecting.timeouts), (30, 0));
    let silent = run("fixed:2", &outage("drop"));
    close(silent.ideal, 2.5);
    close(silent.makespan, 2.5);
    assert_eq!((silent.rejects, silent.timeouts), (0, 6));
}

#[test]
fn a_service_may_begin_with_an_outage_of_its_rate() {
    let text = "requests = 10\n[service]\ndelay = 0.1\n[service.rate]\nlimit = 0
        [[change]]\nat = 3.0\nrate = {}";
    let report = run("fixed:1", text);
    close(report.ideal, 3.1);
    assert_eq!(report.rejects, 30);
}

#[test]
fn the_ideal_knows_when_requests_arrive() {
    let service = "[service]\ndelay = 0.1\n[service.concurrency]\nlimit = 2";
    close(run("fixed:2", &format!("requests = 100\ninterval = 0.1\n{service}")).ideal, 10.0);
    close(run("fixed:2", &format!("requests = 100\ninterval = 0.01\n{service}")).ideal, 5.0);
    // What arrives during an outage has to be done after it.
    let outage = "[[change]]\nat = 4.0\nconcurrency = { limit = 0 }
        [[change]]\nat = 9.0\nconcurrency = { limit = 2 }";
    let report = run("fixed:2", &format!("requests = 100\ninterval = 0.1\n{service}\n{outage}"));
    close(report.ideal, 12.0);
    assert!(report.makespan >= report.ideal && report.makespan < 12.2, "{}", report.makespan);
}

#[test]
fn the_ideal_is_beyond_a_knee_that_is_not_steep() {
    // At twice the knee, the delay is 1.5 times as long: best at 10 / ln 1.5.
    let exponent = 1.5_f64.powf(0.1);
    let text = format!(
        "requests = 100000\n[service]\ndelay = 0.1\njitter = 0.2
        [service.concurrency]\nknee_start = 10\nknee_exp = {exponent}"
    );
    let ideal = run("fixed:25", &text).ideal;
    let at = |level: f64| 100_000.0 / level * 0.1 * (1.5_f64.powf(level / 10.0 - 1.0) + 0.2);
    let best = (1..=200).map(|level| at(f64::from(level))).fold(f64::INFINITY, f64::min);
    assert!((ideal / best - 1.0).abs() < 1e-3, "{ideal}, expected {best}");
}

#[test]
fn connections_share_the_work() {
    let text = "requests = 100\nconnections = 4\n[service]\ndelay = 0.1
        [service.concurrency]\nlimit = 5";
    let report = run("fixed:5", text);
    close(report.ideal, 0.5);
    close(report.makespan, 0.5);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let error = |text: &str| {
        let text = format!("name = \"x\"\nrequests = 5\n{text}");
        text.parse::<Scenario>().unwrap_err().to_string()
    };
    let for_ever = error("[service]\ndelay = 0.1\n[service.concurrency]\nlimit = 0");
    assert!(for_ever.contains("[[change]]"), "{for_ever}");
    let again = "[service]\ndelay = 0.1\n[[change]]\nat = 1.0\nrate = { limit = 0 }";
    assert!(error(again).contains("[[change]]"));
    let slow = error("timeout = 1.0\n[service]\ndelay = 0.1\nlatency = 0.5");
    assert!(slow.contains("latency"), "{slow}");
}
