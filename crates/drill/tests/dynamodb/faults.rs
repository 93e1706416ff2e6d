use crate::client::{Pair, Refused, item, key, start};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};
use tidegate_drill::dynamodb::Faults;

const THROTTLED: &str = "ProvisionedThroughputExceededException";

fn ids(count: usize) -> Vec<String> {
    (0..count).map(|id| format!("{id:03}")).collect()
}

fn puts(it: &Pair, ids: &[String]) -> Value {
    let put = |id: &String| json!({ "PutRequest": { "Item": item(id, 1, "x") } });
    json!({ "RequestItems": { it.table.as_str(): ids.iter().map(put).collect::<Vec<_>>() } })
}

async fn stored(it: &Pair) -> BTreeSet<String> {
    let found = it.direct.ask("Scan", &it.on(json!({}))).await;
    let id = |item: &Value| item["id"]["S"].as_str().unwrap().to_owned();
    found["Items"].as_array().unwrap().iter().map(id).collect()
}

/// Sends a batch until nothing of it is left; counts what was handed back.
async fn insist(it: &Pair, operation: &str, mut body: Value, left: &str) -> (Vec<Value>, usize) {
    let (mut answers, mut back) = (Vec::new(), 0);
    loop {
        match it.client.send(operation, &body).await.unwrap() {
            Ok(answer) => {
                body = json!({ "RequestItems": answer[left] });
                answers.push(answer);
            }
            Err(refused) => assert_eq!((refused.status, refused.kind.as_str()), (400, THROTTLED)),
        }
        let tables = body["RequestItems"].as_object().unwrap();
        let Some(entries) = tables.get(&it.table) else { return (answers, back) };
        let list = entries.as_array().or_else(|| entries["Keys"].as_array()).unwrap();
        assert!(!list.is_empty());
        back += list.len();
    }
}

#[tokio::test]
async fn what_is_handed_back_was_not_written_and_the_rest_was() {
    let ids = ids(25);
    for seed in 0..8 {
        let it = start(seed, &[], Faults { unprocessed: 0.4, ..Faults::default() }).await;
        let answer = it.client.ask("BatchWriteItem", &puts(&it, &ids)).await;
        let back = answer["UnprocessedItems"][&it.table].as_array().cloned().unwrap_or_default();
        let id = |put: &Value| put["PutRequest"]["Item"]["id"]["S"].as_str().unwrap().to_owned();
        let back: BTreeSet<String> = back.iter().map(id).collect();
        let written: BTreeSet<String> =
            ids.iter().filter(|id| !back.contains(*id)).cloned().collect();
        assert_eq!(stored(&it).await, written, "seed {seed}");
        assert_eq!(it.proxy.counters().of("BatchWriteItem").unprocessed, back.len() as u64);
    }
}

#[tokio::test]
async fn who_insists_writes_and_reads_all() {
    let ids = ids(25);
    let it = start(5, &[], Faults { unprocessed: 0.4, ..Faults::default() }).await;
    let (_, back) = insist(&it, "BatchWriteItem", puts(&it, &ids), "UnprocessedItems").await;
    assert!((5..40).contains(&back), "{back}");
    assert_eq!(stored(&it).await, ids.iter().cloned().collect());
    let keys: Vec<Value> = ids.iter().map(|id| key(id)).collect();
    let body = json!({ "RequestItems": { it.table.as_str(): {
        "Keys": keys, "ProjectionExpression": "id", "ConsistentRead": true,
    } } });
    let (answers, back) = insist(&it, "BatchGetItem", body, "UnprocessedKeys").await;
    assert!((5..40).contains(&back), "{back}");
    let items = answers.iter().flat_map(|it_| it_["Responses"][&it.table].as_array().unwrap());
    let mut found: Vec<Value> = items.cloned().collect();
    found.sort_by_key(Value::to_string);
    // Once each, and by the projection that came back with the keys.
    assert_eq!(found, keys);
}

#[tokio::test]
async fn a_batch_of_which_nothing_is_left_is_throttled() {
    let it = start(1, &[], Faults { unprocessed: 1.0, ..Faults::default() }).await;
    let refused = it.client.send("BatchWriteItem", &puts(&it, &ids(3))).await.unwrap().unwrap_err();
    assert_eq!((refused.status, refused.kind.as_str()), (400, THROTTLED));
    let count = it.proxy.counters().of("BatchWriteItem");
    assert_eq!((count.throttled, count.unprocessed, count.write_units), (1, 0, 0.0));
    assert_eq!(stored(&it).await, BTreeSet::new());
}

#[tokio::test]
async fn a_share_of_the_chosen_operations_is_throttled_while_it_is_switched_on() {
    let faults = Faults { throttled: [("UpdateItem", 0.5)].into(), ..Faults::default() };
    let it = start(3, &[item("a", 1, "x")], faults).await;
    let body = it.on(json!({ "Key": key("a"), "UpdateExpression": "ADD marks :one", "ExpressionAttributeValues": { ":one": { "N": "1" } } }));
    let mut refusals: BTreeMap<String, u64> = BTreeMap::new();
    for _ in 0..200 {
        it.put(item("b", 1, "x")).await;
        if let Err(Refused { kind, .. }) = it.client.send("UpdateItem", &body).await.unwrap() {
            *refusals.entry(kind).or_default() += 1;
        }
    }
    let refused = refusals[THROTTLED];
    assert!(refusals.len() == 1 && (60..140).contains(&refused), "{refusals:?}");
    assert_eq!(it.proxy.counters().of("UpdateItem").throttled, refused);
    it.proxy.set_faults(Faults::default());
    let after = it.ask("GetItem", json!({ "Key": key("a") })).await;
    assert_eq!(after["Item"]["marks"]["N"], (200 - refused).to_string());
    it.client.ask("UpdateItem", &body).await;
}

#[tokio::test]
async fn a_throttled_transaction_names_the_action_to_blame() {
    let faults = Faults { throttled: [("TransactWriteItems", 1.0)].into(), ..Faults::default() };
    let it = start(3, &[], faults).await;
    let put = |id: &String| json!({ "Put": { "TableName": it.table, "Item": item(id, 1, "x") } });
    let body = json!({ "TransactItems": ids(3).iter().map(put).collect::<Vec<_>>() });
    let refused = it.client.send("TransactWriteItems", &body).await.unwrap().unwrap_err();
    assert_eq!(refused.kind, "TransactionCanceledException");
    let reasons = refused.body["CancellationReasons"].as_array().unwrap();
    let mut codes: Vec<&str> = reasons.iter().map(|it| it["Code"].as_str().unwrap()).collect();
    codes.sort_unstable();
    assert_eq!(codes, ["None", "None", "ThrottlingError"]);
    assert_eq!(stored(&it).await, BTreeSet::new());
}

#[tokio::test]
async fn cut_requests_are_carried_out_before_or_not_at_all() {
    for (faults, stored_after) in [
        (Faults { cut_before: 1.0, ..Faults::default() }, 0),
        (Faults { cut_after: 1.0, ..Faults::default() }, 1),
    ] {
        let it = start(1, &[], faults).await;
        let body = it.on(json!({ "Item": item("a", 1, "x") }));
        assert_eq!(it.client.send("PutItem", &body).await, None);
        assert_eq!(stored(&it).await.len(), stored_after);
        let count = it.proxy.counters().of("PutItem");
        assert_eq!((count.requests, count.cut), (1, 1));
    }
}

#[tokio::test]
async fn answers_come_late() {
    let latency = Duration::from_millis(30);
    let it = start(1, &[], Faults { latency, ..Faults::default() }).await;
    let start = Instant::now();
    it.put(item("a", 1, "x")).await;
    assert!(start.elapsed() >= latency);
}

#[tokio::test]
async fn one_seed_is_one_run() {
    async fn run(seed: u64) -> Vec<bool> {
        let it = start(seed, &[], Faults { cut_before: 0.5, ..Faults::default() }).await;
        let mut fates = Vec::new();
        for _ in 0..32 {
            let body = it.on(json!({ "Key": key("a") }));
            fates.push(it.client.send("GetItem", &body).await.is_some());
        }
        fates
    }
    assert_eq!(run(7).await, run(7).await);
    assert_ne!(run(7).await, run(8).await);
}

/// With any code, and of a transaction with that of one of its actions.
#[tokio::test]
async fn requests_are_refused_with_the_codes_that_are_asked_for() {
    let refused = [
        ("PutItem", ("ExpiredTokenException", 1.0)),
        ("TransactWriteItems", ("TransactionConflict", 1.0)),
    ];
    let it = start(3, &[], Faults { refused: refused.into(), ..Faults::default() }).await;
    let put = it.on(json!({ "Item": item("a", 1, "x") }));
    let told = it.client.send("PutItem", &put).await.unwrap().unwrap_err();
    assert_eq!((told.status, told.kind.as_str()), (400, "ExpiredTokenException"));
    let actions = json!({ "TransactItems": [{ "Put": put.clone() }] });
    let told = it.client.send("TransactWriteItems", &actions).await.unwrap().unwrap_err();
    assert_eq!(told.kind, "TransactionCanceledException");
    assert_eq!(told.body["CancellationReasons"][0]["Code"], "TransactionConflict");
    assert_eq!(stored(&it).await, BTreeSet::new());
    assert_eq!(it.proxy.counters().of("PutItem").refused, 1);
}
