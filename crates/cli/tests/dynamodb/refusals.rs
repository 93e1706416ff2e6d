//! One clear error for each mistake, and nothing is half written.

use crate::world::{World, service};
use serde_json::{Value, json};

/// The command must fail with an error that says all of this, and not as a bug.
fn refused(world: &World, args: &[&str], words: &[&str]) {
    let said = world.tidegate(args);
    assert_eq!((said.code, said.stdout.as_str()), (1, ""), "{args:?}: {}", said.stderr);
    assert_eq!(said.stderr.lines().count(), 1, "one error: {}", said.stderr);
    for word in words {
        assert!(said.stderr.contains(word), "{args:?}: no `{word}` in: {}", said.stderr);
    }
}

/// The commands that `migrate --print` prints: operations and what they get.
fn commands(world: &World) -> Vec<(String, Value)> {
    let script = world.ok(&["migrate", "--print"]);
    let parts = script.split("\naws dynamodb ").skip(1);
    let command = |part: &str| {
        let operation = match part.split_whitespace().next().unwrap() {
            "create-table" => "CreateTable",
            "update-table" => "UpdateTable",
            other => panic!("{other}"),
        };
        let input = part.split("--cli-input-json '").nth(1).unwrap();
        (operation.to_owned(), serde_json::from_str(input.split('\'').next().unwrap()).unwrap())
    };
    parts.map(command).collect()
}

/// What those commands get.
fn printed(world: &World) -> Vec<Value> {
    commands(world).into_iter().map(|(_, input)| input).collect()
}

fn world() -> World {
    let world = World::new();
    world.settings("[sinks.out]\nkind = 'file'\npath = 'out.ndjson'\n");
    world
}

/// Commands that read or write messages.
const COMMANDS: [&[&str]; 4] = [
    &["publish", "orders", "1"],
    &["relay", "--drain"],
    &["outbox", "status"],
    &["outbox", "dead"],
];

#[test]
fn a_table_that_is_missing_is_named_and_not_made() {
    let world = world();
    for args in COMMANDS {
        refused(&world, args, &[&format!("no table {}", world.table), "run `tidegate migrate`"]);
    }
    let check = world.tidegate(&["check"]);
    assert!(check.code == 1 && check.stdout.contains("run `tidegate migrate`"), "{}", check.stdout);
    let doctor = world.tidegate(&["doctor"]);
    assert!(doctor.code == 1 && doctor.stdout.contains("tidegate migrate"), "{}", doctor.stdout);
    let made = world.json(&["migrate"]);
    assert_eq!(made["applied"], json!(["table of messages", "side table"]));
    assert_eq!(world.json(&["migrate"])["applied"], json!([]));
}

#[test]
fn what_is_printed_makes_the_same_tables() {
    let world = world();
    for table in printed(&world) {
        world.ask("CreateTable", &table);
    }
    assert_eq!(world.json(&["migrate"])["applied"], json!([]), "nothing is missing");
    world.ok(&["publish", "orders", "1"]);
}

/// One index at a time, as DynamoDB requires, and as the table is paid for.
#[test]
fn of_a_table_of_v9_what_is_missing_is_printed() {
    let world = world();
    let mut table = printed(&world)[0].clone();
    let units = json!({ "ReadCapacityUnits": 5, "WriteCapacityUnits": 7 });
    table["BillingMode"] = json!("PROVISIONED");
    table["ProvisionedThroughput"] = units.clone();
    let indexes = table["GlobalSecondaryIndexes"].as_array_mut().unwrap();
    indexes
        .retain(|index| index["IndexName"] == "Outstanding" || index["IndexName"] == "Delivered");
    for index in indexes {
        index["ProvisionedThroughput"] = units.clone();
        if index["IndexName"] == "Delivered" {
            index["KeySchema"][0]["AttributeName"] = json!("Topic");
        }
    }
    let topic = json!({ "AttributeName": "Topic", "AttributeType": "S" });
    table["AttributeDefinitions"].as_array_mut().unwrap().push(topic);
    world.ask("CreateTable", &table);
    let commands = commands(&world);
    let mut added = Vec::new();
    for (operation, input) in &commands {
        let index = &input["GlobalSecondaryIndexUpdates"][0]["Create"];
        if operation == "UpdateTable" {
            assert_eq!(index["ProvisionedThroughput"], units, "{input}");
            added.push(index["IndexName"].as_str().unwrap());
        }
        world.ask(operation, input);
    }
    assert_eq!(added, ["OutstandingAllTopics", "DeliveredV10", "DeliveredAllTopics"]);
    assert_eq!(commands.len(), 4, "and the side table: {commands:?}");
    assert_eq!(world.json(&["migrate"])["applied"], json!([]), "nothing is missing");
    assert!(world.ok(&["migrate", "--print"]).contains("# Nothing is missing"));
}

#[test]
fn without_access_all_of_it_is_printed() {
    let world = World::at("http://127.0.0.1:1".to_owned());
    world.settings("");
    let script = world.ok(&["migrate", "--print"]);
    assert!(script.starts_with("# The tables could not be looked at"), "{script}");
    let tables = printed(&world);
    assert_eq!(tables.len(), 2, "{script}");
    assert_eq!(tables[0]["GlobalSecondaryIndexes"].as_array().unwrap().len(), 4);
}

#[test]
fn an_index_without_whole_messages_is_refused() {
    let world = world();
    let mut tables = printed(&world);
    tables[0]["GlobalSecondaryIndexes"][1]["Projection"] = json!({ "ProjectionType": "KEYS_ONLY" });
    for table in &tables {
        world.ask("CreateTable", table);
    }
    let words =
        ["OutstandingAllTopics has not all attributes", "outstanding_all_topics_index=NAME"];
    for args in COMMANDS.iter().copied().chain([["migrate"].as_slice(), &["migrate", "--print"]]) {
        refused(&world, args, &words);
    }
    for args in ["check", "doctor"] {
        let said = world.tidegate(&[args]);
        assert!(said.code == 1 && said.stdout.contains(words[0]), "{args}: {}", said.stdout);
    }
}

#[test]
fn doctor_reports_that_items_expire_by_another_attribute() {
    let world = World::with_tables();
    let specification = json!({ "Enabled": true, "AttributeName": "Gone" });
    let on = json!({ "TableName": world.table, "TimeToLiveSpecification": specification });
    world.ask("UpdateTimeToLive", &on);
    assert_eq!(world.tidegate(&["doctor"]).code, 0);
    let store = format!("{}&ttl=7d", world.address());
    let doctor = world.tidegate(&["doctor", "--store", &store]);
    assert!(doctor.code == 1 && doctor.stdout.contains("expire by Gone"), "{}", doctor.stdout);
    refused(
        &world,
        &["migrate", "--store", &store],
        &["expire by Gone", "`ttl` out of the address"],
    );
}

#[test]
fn a_missing_index_is_named_and_added() {
    let names = ["Outstanding", "Delivered", "OutstandingAllTopics", "DeliveredAllTopics"];
    for missing in names {
        let world = world();
        let mut tables = printed(&world);
        let indexes = tables[0]["GlobalSecondaryIndexes"].as_array_mut().unwrap();
        indexes.retain(|index| index["IndexName"] != missing);
        for table in &tables {
            world.ask("CreateTable", table);
        }
        let words = [&*format!("no index {missing} of {}", world.table), "run `tidegate migrate`"];
        for args in COMMANDS {
            refused(&world, args, &words);
        }
        assert_eq!(world.items(&world.table), 0);
        assert_eq!(world.json(&["migrate"])["applied"].as_array().unwrap().len(), 1);
        world.ok(&["publish", "orders", "1"]);
        assert_eq!(world.json(&["relay", "--drain"])["counts"]["delivered"], 1);
    }
}

#[test]
fn a_table_that_is_no_outbox_is_left_alone() {
    let world = world();
    let key = json!({ "AttributeName": "Customer", "KeyType": "HASH" });
    let table = json!({
        "TableName": world.table,
        "AttributeDefinitions": [{ "AttributeName": "Customer", "AttributeType": "S" }],
        "KeySchema": [key],
        "BillingMode": "PAY_PER_REQUEST",
    });
    world.ask("CreateTable", &table);
    let words = ["it is not an outbox: its key is Customer", "name another table"];
    for args in COMMANDS.iter().copied().chain([["migrate"].as_slice()]) {
        refused(&world, args, &words);
    }
    let tables = world.ask("DescribeTable", &json!({ "TableName": world.table }));
    assert_eq!(tables["Table"]["GlobalSecondaryIndexes"], Value::Null);
}

#[test]
fn a_message_that_is_too_large_is_refused_before_anything_is_written() {
    let world = World::with_tables();
    let large = format!("\"{}\"", "x".repeat(450_000));
    let said = world.publish_lines(&["orders"], &format!("1\n2\n{large}\n3\n"));
    assert_eq!(said.code, 1);
    assert!(said.stderr.contains("DynamoDB takes 409600"), "{}", said.stderr);
    assert!(said.stderr.contains("keep the payload elsewhere"), "{}", said.stderr);
    assert_eq!(world.items(&world.table), 0);
}

#[test]
fn credentials_and_a_region_are_asked_for() {
    let world = world();
    for args in COMMANDS {
        let mut command = world.command(args);
        command.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY");
        let output = command.output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains("set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"), "{stderr}");
        assert_eq!(output.status.code(), Some(1));
        let nowhere = format!("dynamodb://{}?endpoint={}", world.table, world.server);
        let args = [args, &["--store", &nowhere]].concat();
        refused(&world, &args, &["no AWS region is known", "set AWS_REGION"]);
    }
}

#[test]
fn an_endpoint_that_is_not_there_is_named() {
    let world = World::at("http://127.0.0.1:1".to_owned());
    world.settings("[sinks.out]\nkind = 'stdout'\n");
    for args in COMMANDS.iter().copied().chain([["migrate"].as_slice()]) {
        refused(&world, args, &["http://127.0.0.1:1 cannot be reached", "check the region"]);
    }
}

#[test]
fn rights_that_are_missing_are_named() {
    let denied = r#"{"__type":"com.amazon.coral.service#AccessDeniedException","message":"User: arn:aws:iam::1:user/tide is not authorized to perform: dynamodb:DescribeTable"}"#;
    let world = World::at(service(400, denied));
    world.settings("[sinks.out]\nkind = 'stdout'\n");
    for args in COMMANDS.iter().copied().chain([["migrate"].as_slice()]) {
        refused(&world, args, &["may not do this", "dynamodb:DescribeTable", "docs/dynamodb.md"]);
    }
}

#[test]
fn commands_that_need_batches_name_those_that_do_not() {
    let world = World::with_tables();
    world.place.write("in.ndjson", "{}\n");
    let hook = service(200, "");
    for args in [
        ["run", "noop", "--runs", "1"].as_slice(),
        &["submit", "noop", "--runs", "1"],
        &["worker"],
        &["batch", "list"],
        &["pace"],
        &["load", "in.ndjson", "--to", &hook, "--allow", "127.0.0.1"],
    ] {
        refused(&world, args, &["has no batches", "`publish`, `relay`, `outbox`"]);
    }
    let drill = world.tidegate(&["drill", "batch"]);
    assert!(drill.stderr.contains("sqlite:FILE or postgres://"), "{}", drill.stderr);
}

#[test]
fn a_table_is_not_declared_twice() {
    let world = World::with_tables();
    let words = ["is a table of Brighter as it is", "min_age=5s"];
    for args in [
        ["relay", "--preset", "brighter"].as_slice(),
        &["outbox", "status", "--preset", "debezium"],
    ] {
        refused(&world, args, &words);
    }
    world.settings("[sinks.out]\nkind = 'stdout'\n[outbox]\nmin_age = '5s'\n");
    for args in COMMANDS {
        refused(&world, args, &words);
    }
    refused(&world, &["relay", "--shadow"], &["--shadow looks at tables in PostgreSQL"]);
}

#[test]
fn addresses_are_read_before_anything_is_sent_and_show_no_password() {
    let world = World::new();
    for (address, word) in [
        ("dynamodb:orders", "write dynamodb://TABLE"),
        ("dynamodb://orders?regoin=x", "`regoin` is unknown here"),
        ("dynamodb://orders?endpoint=http://ann:s3cret@db:8000", "has a user or a password"),
        ("dynamodb://orders?endpoint=ann:s3cret@db", "has a user or a password"),
        ("dynamo://ann:s3cret@orders", "did you mean `dynamodb`?"),
    ] {
        let said = world.tidegate(&["outbox", "status", "--store", address]);
        assert_eq!(said.code, 1, "{address}");
        assert!(said.stderr.contains(word), "{address}: {}", said.stderr);
        assert!(!said.stderr.contains("s3cret"), "{}", said.stderr);
    }
}

/// Brighter took the bytes of a hash for a signed number for a while.
#[test]
fn negative_shards_are_relayed_and_reported() {
    let world = World::with_tables();
    world.ok(&["publish", "orders", "1", "--key", "42"]);
    let found = world.ask("Scan", &json!({ "TableName": world.table }));
    let mut item = found["Items"][0].clone();
    assert_eq!(item["TopicShard"]["S"], "orders_2");
    item["TopicShard"]["S"] = json!("orders_-2");
    world.ask("PutItem", &json!({ "TableName": world.table, "Item": item }));
    let doctor = world.tidegate(&["doctor"]);
    assert!(doctor.stdout.contains("negative"), "{}", doctor.stdout);
    assert!(doctor.stderr.contains("of the account"), "{}", doctor.stderr);
    world.ok(&["relay", "--drain"]);
    assert_eq!(world.delivered("out.ndjson"), [("42".to_owned(), 1)]);
}
