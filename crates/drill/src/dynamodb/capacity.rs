//! Capacity units: the server is asked for them in every request, and tells the client what it asked for itself.

use super::{call::Call, counters::Count, upstream::Answer};
use hyper::StatusCode;
use serde_json::{Map, Value};

const ASKED: &str = "ReturnConsumedCapacity";
const TOLD: &str = "ConsumedCapacity";

const ASKED_FOR_OLD: &str = "ReturnValuesOnConditionCheckFailure";

/// One write capacity unit.
const UNIT_BYTES: usize = 1024;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
}

/// What the client itself asked to be told.
pub struct Asked {
    kind: Option<Kind>,
    capacity: Option<String>,
    old_item: bool,
}

/// Changes a request so that its answer says what it costs.
pub fn ask(call: &mut Call) -> Asked {
    let kind = kind(&call.operation);
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let capacity = call.body.get(ASKED).and_then(text);
    let old_item = call.body.get(ASKED_FOR_OLD).is_some_and(|it| it == "ALL_OLD");
    if kind.is_some() {
        call.body.insert(ASKED.into(), "INDEXES".into());
    }
    // A write whose condition does not hold is charged for the item that is there.
    if has_condition(call) {
        call.body.insert(ASKED_FOR_OLD.into(), "ALL_OLD".into());
    }
    Asked { kind, capacity, old_item }
}

impl Asked {
    /// Reads what a request cost, and takes out of its answer what the client did not ask for.
    pub fn settle(&self, answer: &Answer, body: &mut Map<String, Value>) -> Count {
        let units = match body.get(TOLD) {
            Some(told) => parts(told).filter_map(|part| part["CapacityUnits"].as_f64()).sum(),
            None => refused_write(answer.status, body),
        };
        match self.capacity.as_deref() {
            Some("INDEXES") => {}
            Some("TOTAL") => body.get_mut(TOLD).into_iter().for_each(keep_total),
            _ => drop(body.remove(TOLD)),
        }
        if !answer.status.is_success() && !self.old_item {
            body.remove("Item");
        }
        let of = |kind| if self.kind == Some(kind) { units } else { 0.0 };
        Count {
            refused: u64::from(!answer.status.is_success()),
            read_units: of(Kind::Read),
            write_units: of(Kind::Write),
            ..Count::default()
        }
    }
}

fn kind(operation: &str) -> Option<Kind> {
    match operation {
        "GetItem" | "BatchGetItem" | "TransactGetItems" | "Query" | "Scan" => Some(Kind::Read),
        "PutItem" | "UpdateItem" | "DeleteItem" | "BatchWriteItem" | "TransactWriteItems" => {
            Some(Kind::Write)
        }
        _ => None,
    }
}

fn has_condition(call: &Call) -> bool {
    let single = matches!(call.operation.as_str(), "PutItem" | "UpdateItem" | "DeleteItem");
    single && call.body.contains_key("ConditionExpression")
}

/// One object for one table, or a list of them.
fn parts(told: &Value) -> impl Iterator<Item = &Value> {
    let list = told.as_array().map_or(std::slice::from_ref(told), Vec::as_slice);
    list.iter()
}

fn keep_total(told: &mut Value) {
    let list = match told {
        Value::Array(list) => list.as_mut_slice(),
        one => std::slice::from_mut(one),
    };
    for part in list.iter_mut().filter_map(Value::as_object_mut) {
        for detail in ["Table", "GlobalSecondaryIndexes", "LocalSecondaryIndexes"] {
            part.remove(detail);
        }
    }
}

/// The units of a write whose condition did not hold: those of the item that is there, and at least one.
fn refused_write(status: StatusCode, body: &Map<String, Value>) -> f64 {
    let kind = body.get("__type").and_then(Value::as_str).unwrap_or_default();
    if status.is_success() || !kind.ends_with("#ConditionalCheckFailedException") {
        return 0.0;
    }
    let item = body.get("Item").and_then(Value::as_object);
    item.map_or(0, size_of).div_ceil(UNIT_BYTES).max(1) as f64
}

/// The size of an item, by DynamoDB's rules.
fn size_of(item: &Map<String, Value>) -> usize {
    item.iter().map(|(name, value)| name.len() + size_of_value(value)).sum()
}

fn size_of_value(value: &Value) -> usize {
    let Some((kind, value)) = value.as_object().and_then(|value| value.iter().next()) else {
        return 0;
    };
    let list = || value.as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().map(str::len).unwrap_or_default();
    match kind.as_str() {
        "S" => text(value),
        "N" => number(value),
        "B" => binary(value),
        "SS" => list().map(text).sum(),
        "NS" => list().map(number).sum(),
        "BS" => list().map(binary).sum(),
        // Three bytes for the list or map, and one for each of its elements.
        "L" => 3 + list().map(|it| 1 + size_of_value(it)).sum::<usize>(),
        "M" => 3 + value.as_object().map_or(0, |map| map.len() + size_of(map)),
        _ => 1,
    }
}

/// One byte for two digits, and one.
fn number(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    digits.trim_matches('0').len().div_ceil(2) + 1
}

/// The bytes behind Base64.
fn binary(value: &Value) -> usize {
    value.as_str().unwrap_or_default().trim_end_matches('=').len() * 3 / 4
}
