//! What is published is delivered, and people can look at it and decide.

use crate::{
    support::{signal, wait_until},
    world::{World, service},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    process::{Child, Stdio},
};

/// Each number once, and of each key in order.
fn assert_each_once_in_order(delivered: &[(String, u64)], keys: usize, each: usize) {
    let mut by_key: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for (key, number) in delivered {
        by_key.entry(key).or_default().push(*number);
    }
    assert_eq!(by_key.len(), keys);
    for key in 0..keys {
        let expected: Vec<u64> = (key * each..(key + 1) * each).map(|n| n as u64).collect();
        assert_eq!(by_key[&*format!("key-{key}")], expected, "key-{key}");
    }
}

#[test]
fn lines_are_delivered_once_and_in_the_order_of_their_keys() {
    let world = World::with_tables();
    world.publish(5, 10);
    assert_eq!(world.outstanding(), 50);
    let report = world.json(&["relay", "--drain"]);
    assert_eq!(report["counts"]["delivered"], 50);
    assert_each_once_in_order(&world.delivered("out.ndjson"), 5, 10);
    assert_eq!(world.outstanding(), 0);
    let again = world.json(&["relay", "--drain"]);
    assert_eq!(again["counts"]["delivered"], 0, "what was delivered is not delivered again");
    assert_eq!(world.delivered("out.ndjson").len(), 50);
}

#[test]
fn a_relay_tells_what_it_cost() {
    let world = World::with_tables();
    world.publish(2, 10);
    let costs = &world.json(&["relay", "--drain"])["costs"];
    let sum = |what: &str| {
        let operations = costs["operations"].as_object().unwrap().values();
        operations.map(|it| it[what].as_f64().unwrap()).sum::<f64>()
    };
    assert!(sum("write_units") >= 20.0, "each message was marked: {costs}");
    for what in ["requests", "read_units", "write_units"] {
        let per_thousand = costs["per_thousand_messages"][what].as_f64().unwrap();
        assert!((per_thousand - sum(what) * 50.0).abs() < 1e-6, "{what}: {costs}");
    }
    world.publish(1, 1);
    let said = world.tidegate(&["relay", "--drain"]);
    assert!(said.stderr.contains("per 1,000 messages"), "{}", said.stderr);
    assert!(said.stderr.contains("Brighter's sweeper"), "{}", said.stderr);
}

#[test]
fn headers_and_a_delay_travel_with_a_message() {
    let world = World::with_tables();
    let publish = ["publish", "mails", "hello", "--header", "content-type: text/plain"];
    let more = ["--header", "x-Trace: Ab", "--delay", "300ms"];
    let id = world.ok(&[publish.as_slice(), &more].concat()).trim().to_owned();
    let shown = world.json(&["outbox", "show", &id]);
    assert_eq!(
        (&shown["state"], &shown["text"], &shown["headers"]["x-Trace"]),
        (&json!("outstanding"), &json!("hello"), &json!("Ab")),
        "{shown}"
    );
    world.ok(&["relay", "--drain"]);
    let text = fs::read_to_string(world.place.path("out.ndjson")).unwrap();
    let line: Value = serde_json::from_str(text.trim()).unwrap();
    assert_eq!((&line["id"], &line["headers"]["x-Trace"]), (&json!(id), &json!("Ab")));
    assert_eq!(world.json(&["outbox", "show", &id])["state"], "sent");
}

#[test]
fn people_decide_about_dead_messages() {
    let world = World::with_tables();
    let hook = service(422, "no such");
    let sink = format!("[sinks.out]\nkind = 'http'\nurl = '{hook}/x'\nallow = ['127.0.0.1']\n");
    world.settings(&sink);
    world.publish(1, 3);
    let said = world.tidegate(&["relay", "--drain"]);
    assert_eq!(said.code, 3, "{}", said.stderr);
    let dead = world.json(&["outbox", "dead"]);
    assert_eq!((&dead[0]["topic"], &dead[0]["messages"]), (&json!("orders"), &json!(3)), "{dead}");
    let listed = world.json(&["outbox", "list", "--state", "dead"]);
    let ids: Vec<&str> =
        listed.as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 3);
    assert_eq!(world.json(&["outbox", "show", ids[0]])["state"], "dead");
    let doctor = world.tidegate(&["doctor"]);
    assert_eq!(doctor.code, 1);
    assert!(doctor.stdout.contains("3 messages are dead"), "{}", doctor.stdout);

    world.ok(&["outbox", "drop", ids[2], "--why", "a test", "--export", "dropped.ndjson"]);
    let copy = fs::read_to_string(world.place.path("dropped.ndjson")).unwrap();
    assert!(copy.contains(ids[2]) && copy.lines().count() == 1, "{copy}");
    world.settings("[sinks.out]\nkind = 'file'\npath = 'out.ndjson'\n");
    assert_eq!(world.json(&["outbox", "retry", "--all", "--why", "mended"])["retried"], 2);
    world.ok(&["relay", "--drain"]);
    let of_key = |n| ("key-0".to_owned(), n);
    assert_eq!(world.delivered("out.ndjson"), [of_key(0), of_key(1)]);
    let audit = world.json(&["outbox", "audit"]);
    let what: Vec<_> = audit.as_array().unwrap().iter().map(|line| &line["what"]).collect();
    assert_eq!(what, ["retry", "drop"], "{audit}");
    assert_eq!(world.tidegate(&["doctor"]).code, 0);
}

#[test]
fn what_was_sent_is_archived_or_purged_and_nothing_else() {
    let world = World::with_tables();
    world.publish(2, 5);
    world.ok(&["relay", "--drain"]);
    world.ok(&["publish", "orders", "77"]);
    let archived = world.json(&["outbox", "archive", "sent", "--older-than", "1ms"]);
    assert_eq!((&archived["messages"], world.outstanding()), (&json!(10), 1), "{archived}");
    world.ok(&["relay", "--drain"]);
    assert_eq!(world.json(&["outbox", "purge", "--older-than", "1ms"])["removed"], 1);
    assert_eq!(world.items(&world.table), 0);
}

#[test]
fn a_limit_refuses_messages_and_can_be_lifted() {
    let world = World::with_tables();
    world.ok(&["outbox", "limit", "2"]);
    world.ok(&["publish", "orders", "1"]);
    world.ok(&["publish", "orders", "2"]);
    let said = world.tidegate(&["publish", "orders", "3"]);
    assert!(said.code == 1 && said.stderr.contains("2 is the limit"), "{}", said.stderr);
    assert_eq!(world.json(&["outbox", "status"])["limit"], 2);
    world.ok(&["outbox", "limit", "off"]);
    world.ok(&["publish", "orders", "3"]);
    assert_eq!(world.outstanding(), 3);
}

fn start(world: &World, sink: &str) -> Child {
    let mut command =
        world.command(&["relay", "--to", sink, "--lease", "2s", "--poll", "100ms", "-q"]);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn two_relays_share_the_work() {
    let mut world = World::with_tables();
    // They read while others write: order holds for messages that are old enough.
    world.min_age = "300ms";
    let sink = |name: &str| format!("[sinks.{name}]\nkind = 'file'\npath = '{name}.ndjson'\n");
    world.settings(&format!("{}{}{}", sink("out"), sink("one"), sink("two")));
    let relays = [start(&world, "one"), start(&world, "two")];
    wait_until("both have lanes", || {
        let status = world.json(&["outbox", "status"]);
        let relays = status["relays"].as_array().unwrap();
        let have = relays.iter().filter(|relay| relay["lanes"].as_u64() == Some(32)).count();
        (have == 2).then_some(())
    });
    world.publish(20, 5);
    wait_until("all are delivered", || (world.outstanding() == 0).then_some(()));
    for relay in relays {
        signal(&relay, "TERM");
        let output = relay.wait_with_output().unwrap();
        assert!(output.status.code().is_some(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let files = [world.delivered("one.ndjson"), world.delivered("two.ndjson")];
    assert!(files.iter().all(|file| !file.is_empty()), "both had something to do");
    assert_each_once_in_order(&files.concat(), 20, 5);
}
