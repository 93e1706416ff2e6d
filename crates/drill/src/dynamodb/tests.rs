use super::{
    backlog::Backlog,
    call::Call,
    unprocessed::{HeldBack, hold_back},
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, time::Duration};
use tokio::time::Instant;

fn call(operation: &str, body: Value) -> Call {
    let Value::Object(body) = body else { panic!("{body} is no object") };
    Call { operation: operation.into(), body }
}

proptest! {
    /// Of every item, an index shows a state that it had, never an older one than before, and none that is
    /// overdue.
    #[test]
    fn states_are_shown_in_order_and_in_time(
        changes in prop::collection::vec((0_u8..4, 0_u64..100), 1..60),
        reads in prop::collection::vec(0_u64..160, 1..20),
    ) {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut backlog = Backlog::default();
        let (mut dues, mut shown) = (BTreeMap::<u8, Vec<u64>>::new(), BTreeMap::<u8, usize>::new());
        for (item, lag) in &changes {
            let states = dues.entry(*item).or_default();
            let change = json!([item, states.len()]);
            states.push(*lag);
            backlog.note(item.to_string(), change, at(*lag));
        }
        let mut reads = reads;
        reads.sort_unstable();
        for now in reads {
            let due = backlog.take_due(at(now));
            for change in &due {
                let (item, state) = (change[0].as_u64().unwrap() as u8, change[1].as_u64().unwrap() as usize);
                let before = shown.insert(item, state);
                prop_assert!(before.is_none_or(|before| before < state));
            }
            for (item, states) in &dues {
                // A state is late no longer than the latest before it.
                let expected = (0..states.len()).rfind(|n| states[..=*n].iter().all(|due| *due <= now));
                prop_assert_eq!(shown.get(item).copied(), expected);
            }
        }
        for change in backlog.take_all() {
            shown.insert(change[0].as_u64().unwrap() as u8, change[1].as_u64().unwrap() as usize);
        }
        prop_assert!(dues.iter().all(|(item, states)| shown[item] == states.len() - 1));
        prop_assert_eq!(backlog.take_all(), Vec::<Value>::new());
    }

    /// Every entry is carried out or handed back, in its order, and together with what is said of its table.
    #[test]
    fn entries_are_carried_out_or_handed_back(
        tables in prop::collection::btree_map("[a-c]", 1_usize..9, 1..4),
        writes in any::<bool>(),
        luck in prop::collection::vec(any::<bool>(), 40),
    ) {
        let operation = if writes { "BatchWriteItem" } else { "BatchGetItem" };
        let field = if writes { "UnprocessedItems" } else { "UnprocessedKeys" };
        let entries = |list: Vec<usize>| {
            if writes { json!(list) } else { json!({ "Keys": list, "ProjectionExpression": "id" }) }
        };
        let all = tables.iter().map(|(table, count)| (table.clone(), entries((0..*count).collect())));
        let mut call = call(operation, json!({ "RequestItems": all.collect::<Map<_, _>>() }));
        let mut draws = luck.iter().copied();
        let held = hold_back(&mut call, || draws.next().unwrap());
        let (count, none_left) = (held.count, held.all);
        let mut answer = Map::new();
        held.return_in(operation, &mut answer);
        let mut draws = luck.into_iter();
        let (mut left, mut back) = (Map::new(), Map::new());
        let mut held_back = 0;
        for (table, count) in &tables {
            let (mine, theirs): (Vec<_>, Vec<_>) = (0..*count).partition(|_| draws.next().unwrap());
            held_back += mine.len() as u64;
            if !mine.is_empty() { back.insert(table.clone(), entries(mine)); }
            if !theirs.is_empty() { left.insert(table.clone(), entries(theirs)); }
        }
        prop_assert_eq!((count, none_left), (held_back, left.is_empty()));
        prop_assert_eq!(&call.body["RequestItems"], &Value::from(left));
        let expected = if held_back > 0 { json!({ field: back }) } else { json!({}) };
        prop_assert_eq!(Value::from(answer), expected);
    }
}

#[test]
fn what_the_server_hands_back_is_kept() {
    let mut batch = call("BatchWriteItem", json!({ "RequestItems": { "t": [1, 2], "u": [3] } }));
    let mut draws = [true, false, false].into_iter();
    let held = hold_back(&mut batch, || draws.next().unwrap());
    let Value::Object(mut answer) = json!({ "UnprocessedItems": { "t": [2], "u": [3] } }) else {
        unreachable!()
    };
    held.return_in("BatchWriteItem", &mut answer);
    assert_eq!(answer["UnprocessedItems"], json!({ "t": [2, 1], "u": [3] }));
}

#[test]
fn other_requests_are_not_touched() {
    let body = json!({ "TableName": "t", "RequestItems": { "t": [1] } });
    let mut put = call("PutItem", body.clone());
    assert_eq!(hold_back(&mut put, || true), HeldBack::default());
    assert_eq!(Value::from(put.body), body);
}
