//! The errors that the proxy answers itself, as DynamoDB writes them.

use super::{call::Call, upstream::Answer};
use hyper::{
    HeaderMap, StatusCode,
    header::{CONTENT_TYPE, HeaderValue},
};
use serde_json::{Map, Value, json};

const NAMESPACE: &str = "com.amazonaws.dynamodb.v20120810";

const TOO_FAST: &str = "The level of configured provisioned throughput for the table was exceeded. \
     Consider increasing your provisioning level with the UpdateTable API.";

/// Refuses a request for its rate. Of a transaction, one action is to blame, which `pick` chooses.
pub fn throttled(call: &Call, pick: impl FnOnce(usize) -> usize) -> Answer {
    let code = match call.operation.as_str() {
        "TransactWriteItems" => "ThrottlingError",
        _ => "ProvisionedThroughputExceededException",
    };
    refuse(call, code, TOO_FAST, pick)
}

/// Refuses a request with a code. Of a transaction, one action is to blame for what is no exception.
pub fn refused(call: &Call, code: &str, pick: impl FnOnce(usize) -> usize) -> Answer {
    refuse(call, code, "The faults ask for this.", pick)
}

fn refuse(call: &Call, code: &str, told: &str, pick: impl FnOnce(usize) -> usize) -> Answer {
    if call.operation == "TransactWriteItems" && !code.ends_with("Exception") {
        let actions = call.body.get("TransactItems").and_then(Value::as_array).map_or(0, Vec::len);
        return cancelled(actions, pick(actions), code, told);
    }
    let body = json!({ "__type": format!("{NAMESPACE}#{code}"), "message": told });
    answer(StatusCode::BAD_REQUEST, &body)
}

/// Something of the proxy's own failed: clients see it as an error of the server, with what went wrong.
pub fn broken(problem: &str) -> Answer {
    let kind = format!("{NAMESPACE}#InternalServerError");
    answer(StatusCode::INTERNAL_SERVER_ERROR, &json!({ "__type": kind, "message": problem }))
}

fn cancelled(actions: usize, blamed: usize, code: &str, told: &str) -> Answer {
    let code = |action| if action == blamed { code } else { "None" };
    let codes: Vec<&str> = (0..actions).map(code).collect();
    let reasons: Vec<Value> = codes.iter().map(|code| reason(code, told)).collect();
    let message = format!(
        "Transaction cancelled, please refer cancellation reasons for specific reasons [{}]",
        codes.join(", ")
    );
    let kind = format!("{NAMESPACE}#TransactionCanceledException");
    let body = json!({ "__type": kind, "Message": message, "CancellationReasons": reasons });
    answer(StatusCode::BAD_REQUEST, &body)
}

fn reason(code: &str, told: &str) -> Value {
    let mut reason = Map::new();
    reason.insert("Code".into(), code.into());
    if code != "None" {
        reason.insert("Message".into(), told.into());
    }
    reason.into()
}

fn answer(status: StatusCode, body: &Value) -> Answer {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-amz-json-1.0"));
    Answer { status, headers, body: body.to_string().into() }
}
