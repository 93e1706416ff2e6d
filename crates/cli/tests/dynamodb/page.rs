//! What docs/dynamodb.md says works as it stands there.

use crate::world::World;
use serde_json::Value;
use std::{collections::BTreeSet, process::Command};

const PAGE: &str = include_str!("../../../../docs/dynamodb.md");

fn blocks(language: &str) -> Vec<&'static str> {
    let begin = format!("```{language}\n");
    let parts: Vec<&str> = PAGE.split(begin.as_str()).skip(1).collect();
    parts.into_iter().filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn the_quick_start_works() {
    let world = World::new();
    let settings = blocks("toml")[0];
    let address = settings.split('"').nth(1).unwrap();
    world.place.write("tidegate.toml", settings.replace(address, &world.address()));
    let commands = blocks("sh")[0];
    assert_eq!(commands.lines().count(), 5);
    for line in commands.lines() {
        // The line as a shell reads it, with the binary under test.
        let command = world.command(&[]);
        let script = line.replacen("tidegate", command.get_program().to_str().unwrap(), 1);
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).current_dir(command.get_current_dir().unwrap());
        shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let text = std::fs::read_to_string(world.place.path("out.ndjson")).unwrap();
    assert!(text.contains("{\"number\": 17}"), "{text}");
}

/// The actions that a policy allows.
fn allowed(policy: &str) -> BTreeSet<String> {
    let policy: Value = serde_json::from_str(policy).unwrap();
    let statements = policy["Statement"].as_array().unwrap().iter();
    let actions = statements.flat_map(|statement| statement["Action"].as_array().unwrap().clone());
    actions.map(|action| action.as_str().unwrap().replace("dynamodb:", "")).collect()
}

#[test]
fn a_relay_does_nothing_that_its_policy_does_not_allow() {
    let world = World::with_tables();
    world.publish(2, 5);
    let report = world.json(&["relay", "--drain"]);
    let operations = report["costs"]["operations"].as_object().unwrap();
    let allowed = allowed(blocks("json")[0]);
    // A transaction needs what is in it.
    for operation in operations.keys().filter(|name| *name != "TransactWriteItems") {
        assert!(allowed.contains(operation), "{operation}");
    }
    assert!(allowed.contains("ConditionCheckItem") && blocks("json").len() == 3);
}
