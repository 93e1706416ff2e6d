//! What `migrate` does, as commands of the AWS CLI, for people who apply them with a tool of their own.

use super::{
    NAME, SCOPE,
    create::{units, units_of_index},
    layout::{Layout, Units, Wanted, wanted},
    ttl::Expiry,
};
use crate::{
    DynamoDb,
    address::Address,
    item::name::{DELIVERY_TIME, EXPIRES_AT, MESSAGE_ID, OUTSTANDING, TOPIC_SHARD},
};
use serde_json::{Value, json};
use tidegate_core::StoreError;

/// The commands that make the tables of an address.
pub fn script(address: &Address) -> String {
    let parts = [Some(create_messages(address)), Some(create_side_table(address))];
    let expiry = address.ttl.map(|_| turn_on_expiry(address));
    parts.into_iter().chain([expiry]).flatten().collect::<Vec<_>>().join("\n")
}

/// The same, and why it makes everything anew.
pub fn script_unseen(address: &Address, error: &StoreError) -> String {
    let told = error.to_string().replace(['\r', '\n'], " ");
    let script = script(address);
    format!("# The tables could not be looked at, so this makes all of them ({told}).\n{script}")
}

impl DynamoDb {
    /// The commands that make what is missing, one index at a time; all of it if the tables cannot be looked at.
    /// Changes nothing.
    pub async fn script_of_missing(&self) -> Result<String, StoreError> {
        let (client, address) = (&self.client, self.address());
        let layout = match client.layout(&address.table).await {
            Ok(layout) => layout,
            Err(error) => return Ok(script_unseen(address, &error)),
        };
        let (mut parts, is_new) = (Vec::new(), layout.is_none());
        match layout {
            None => parts.push(create_messages(address)),
            Some(layout) => {
                client.check(&layout)?;
                let lacking = wanted(&address.indexes).into_iter();
                let lacking = lacking.filter_map(|wanted| layout.lacks_index(wanted));
                parts.extend(lacking.map(|wanted| add_index(address, &layout, &wanted)));
            }
        }
        if client.layout(&address.side_table).await?.is_none() {
            parts.push(create_side_table(address));
        }
        let expires = address.ttl.is_some();
        // Of a table that is not there yet, nothing is known.
        if expires && (is_new || client.own_expiry().await? == Expiry::Off) {
            parts.push(turn_on_expiry(address));
        }
        Ok(match parts.is_empty() {
            true => format!("# Nothing is missing of {}.\n", address.place()),
            false => parts.join("\n"),
        })
    }
}

fn create_messages(address: &Address) -> String {
    let mut table = json!({
        "TableName": address.table,
        "AttributeDefinitions": definitions(&[MESSAGE_ID, TOPIC_SHARD, OUTSTANDING, DELIVERY_TIME]),
        "KeySchema": [key(MESSAGE_ID, "HASH")],
    });
    bill(&mut table, units(address.billing));
    let indexes = wanted(&address.indexes);
    let indexes = indexes.iter().map(|it| index(it, units(address.billing)));
    table["GlobalSecondaryIndexes"] = indexes.collect();
    format!("# The messages.\n{}", command(address, "create-table", &table))
}

fn create_side_table(address: &Address) -> String {
    let mut table = json!({
        "TableName": address.side_table,
        "AttributeDefinitions": definitions(&[SCOPE, NAME]),
        "KeySchema": [key(SCOPE, "HASH"), key(NAME, "RANGE")],
    });
    bill(&mut table, units(address.billing));
    format!("# Leases, and what was set aside.\n{}", command(address, "create-table", &table))
}

fn add_index(address: &Address, table: &Layout, wanted: &Wanted) -> String {
    let update = json!({
        "TableName": address.table,
        "AttributeDefinitions": definitions(&[wanted.hash, wanted.range]),
        "GlobalSecondaryIndexUpdates":
            [{ "Create": index(wanted, units_of_index(address, table)) }],
    });
    let (name, place) = (&wanted.name, place(address));
    format!(
        "# The {}, and the wait until DynamoDB has filled it: it adds one index at a time.\n{}\
         until aws dynamodb describe-table --table-name {}{place} --output text \\\n    \
         --query \"Table.GlobalSecondaryIndexes[?IndexName=='{name}'].IndexStatus\" | grep -q ACTIVE; do sleep 10; \
         done\n",
        wanted.applied,
        command(address, "update-table", &update),
        address.table,
    )
}

fn turn_on_expiry(address: &Address) -> String {
    let specification = json!({ "TableName": address.table, "TimeToLiveSpecification": { "Enabled": true, "AttributeName": EXPIRES_AT } });
    format!(
        "# The expiry of delivered messages.\n{}",
        command(address, "update-time-to-live", &specification)
    )
}

fn bill(table: &mut Value, units: Option<Units>) {
    match units {
        None => table["BillingMode"] = json!("PAY_PER_REQUEST"),
        Some(units) => {
            table["BillingMode"] = json!("PROVISIONED");
            table["ProvisionedThroughput"] = throughput(units);
        }
    }
}

fn throughput(units: Units) -> Value {
    json!({ "ReadCapacityUnits": units.read, "WriteCapacityUnits": units.write })
}

fn key(name: &str, kind: &str) -> Value {
    json!({ "AttributeName": name, "KeyType": kind })
}

fn definitions(names: &[&str]) -> Value {
    let kind = |name: &str| if matches!(name, OUTSTANDING | DELIVERY_TIME) { "N" } else { "S" };
    let one = |name: &&str| json!({ "AttributeName": name, "AttributeType": kind(name) });
    names.iter().map(one).collect()
}

fn index(wanted: &Wanted, units: Option<Units>) -> Value {
    let mut index = json!({
        "IndexName": wanted.name,
        "KeySchema": [key(wanted.hash, "HASH"), key(wanted.range, "RANGE")],
        "Projection": { "ProjectionType": "ALL" },
    });
    if let Some(units) = units {
        index["ProvisionedThroughput"] = throughput(units);
    }
    index
}

fn command(address: &Address, name: &str, input: &Value) -> String {
    let input = quoted(&format!("{input:#}"));
    format!("aws dynamodb {name}{} --cli-input-json {input}\n", place(address))
}

/// Where the tables are, as options of the AWS CLI.
fn place(address: &Address) -> String {
    let options = [
        ("region", &address.region),
        ("endpoint-url", &address.endpoint),
        ("profile", &address.profile),
    ];
    let option = |(name, value): (&str, &Option<String>)| {
        value.as_deref().map(|value| format!(" --{name} {}", quoted(value)))
    };
    options.into_iter().filter_map(option).collect()
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::layout::tests::of_v9;

    fn json_of(command: &str) -> Value {
        let input = command.split("--cli-input-json '").nth(1).unwrap();
        serde_json::from_str(input.split('\'').next().unwrap()).unwrap()
    }

    #[test]
    fn commands_name_the_place_and_are_safe_to_paste() {
        let address = "dynamodb://outbox?region=eu-central-1&profile=it%27s&endpoint=http%3A%2F%2Fdb:8000&ttl=1h";
        let script = script(&Address::parse(address).unwrap());
        assert_eq!(script.matches(" --region 'eu-central-1'").count(), 3, "{script}");
        assert_eq!(script.matches(r" --profile 'it'\''s'").count(), 3, "{script}");
        assert!(script.contains("--endpoint-url 'http://db:8000'"), "{script}");
        assert!(script.contains("update-time-to-live"), "{script}");
    }

    #[test]
    fn an_index_gets_the_units_that_its_table_asks_for() {
        let units = Units { read: 5, write: 7 };
        let json = |read, write| json!({ "ReadCapacityUnits": read, "WriteCapacityUnits": write });
        for (billing, table, expected) in [
            ("", None, Value::Null),
            ("?billing=50/25", None, Value::Null),
            ("", Some(units), json(5, 7)),
            ("?billing=50/25", Some(units), json(50, 25)),
        ] {
            let address = Address::parse(&format!("dynamodb://outbox{billing}")).unwrap();
            let layout = of_v9(table);
            let command = add_index(&address, &layout, &layout.lacks(&address.indexes).unwrap());
            let created = &json_of(&command)["GlobalSecondaryIndexUpdates"][0]["Create"];
            assert_eq!(created["ProvisionedThroughput"], expected, "{billing} {table:?}");
        }
    }
}
