use super::*;
use serde_json::{Value, json};
use tidegate_core::Headers;

const UUID: &str = "550e8400-e29b-41d4-a716-446655440000";

fn form(rest: &str) -> Form {
    let config = format!("url = 'https://h:6333/q/'\ncollection = 'docs'\n{rest}");
    Form::new(&toml::from_str(&config).unwrap()).unwrap()
}

fn operation(name: &str) -> Headers {
    Headers::from_iter([(OPERATION, name)])
}

fn item<'a>(headers: &'a Headers, key: Option<&'a str>, payload: &'a str) -> Item<'a> {
    Item { key, headers, topic: "docs", ..Item::record("m-1", payload) }
}

/// The point that is written for a payload.
fn point(rest: &str, payload: &str) -> Result<Value, String> {
    let write = form(rest).write(&item(Headers::none(), Some("7"), payload))?;
    Ok(serde_json::from_str(&write.point.unwrap()).unwrap())
}

#[test]
fn addresses_are_qdrants() {
    let form = form("");
    assert_eq!(form.at(&[]).as_str(), "https://h:6333/q/collections");
    let batch = form.batch_at("a b%/../ü");
    let path = "https://h:6333/q/collections/a%20b%25%2F..%2F%C3%BC/points/batch?wait=true";
    assert_eq!(batch.as_str(), path);
}

#[test]
fn all_but_vector_and_id_is_the_payload() {
    let sent = point("", r#"{"id":9,"vector":[0.10,1],"name":"a","n":1.50}"#).unwrap();
    let expected = json!({ "id": 9, "vector": [0.1, 1], "payload": { "name": "a", "n": 1.5 } });
    assert_eq!(sent, expected);
    let sent = point("", r#"{"id":"user-9","vector":[1]}"#).unwrap();
    assert_eq!(sent, json!({ "id": 7, "vector": [1], "payload": { "id": "user-9" } }));
    let sent = point("", r#"{"vector":{"text":[1],"image":[2]}}"#).unwrap();
    assert_eq!(sent["vector"], json!({ "text": [1], "image": [2] }));
    assert_eq!(sent["payload"], json!({}));
}

#[test]
fn qdrants_own_form_is_understood() {
    let sent = point("", &format!(r#"{{"id":"{UUID}","vector":[1],"payload":{{"a":1}}}}"#));
    assert_eq!(sent.unwrap(), json!({ "id": UUID, "vector": [1], "payload": { "a": 1 } }));
    let sent = point("", r#"{"vector":[1],"payload":{"a":1},"b":2}"#).unwrap();
    assert_eq!(sent["payload"], json!({ "payload": { "a": 1 }, "b": 2 }));
    let sent = point("", r#"{"vector":[1],"payload":"text"}"#).unwrap();
    assert_eq!(sent["payload"], json!({ "payload": "text" }));
}

#[test]
fn fields_may_have_other_names() {
    let rest = "vector_field = 'v'\nid_field = 'no'\npayload_field = 'meta'";
    let sent = point(rest, r#"{"no":3,"v":[1],"meta":{"a":1},"x":0}"#).unwrap();
    assert_eq!(sent, json!({ "id": 3, "vector": [1], "payload": { "a": 1 } }));
    assert_eq!(point(rest, r#"{"v":[1]}"#).unwrap()["payload"], json!({}));
    assert_eq!(point(rest, r#"{"v":[1],"meta":7}"#).unwrap_err(), "field `meta` is no JSON object");
}

#[test]
fn a_point_is_called_after_its_field_its_key_or_its_message() {
    let id = |key, payload: &str| form("").write(&item(Headers::none(), key, payload)).unwrap().id;
    assert_eq!(id(Some("7"), r#"{"id":9,"vector":[]}"#), PointId::Number(9));
    assert_eq!(id(Some("7"), r#"{"id":-9,"vector":[]}"#), PointId::Number(7));
    assert_eq!(id(Some("a/b"), r#"{"vector":[]}"#), PointId::of("a/b"));
    assert_eq!(id(None, r#"{"vector":[]}"#), PointId::of("m-1"));
}

#[test]
fn a_delete_needs_a_name_and_nothing_else() {
    let headers = operation("delete");
    let write = |key, payload| form("").write(&item(&headers, key, payload));
    for payload in ["", "null", "{}", "\u{fffd}", r#"{"vector":7}"#] {
        let deleted = write(Some("7"), payload).unwrap();
        assert_eq!((deleted.id, deleted.point), (PointId::Number(7), None), "{payload}");
    }
    assert_eq!(write(None, r#"{"id":9}"#).unwrap().id, PointId::Number(9));
    assert!(write(None, "{}").unwrap_err().contains("needs a key"));
}

/// Rows as an application that chooses the names of points itself writes them.
#[test]
fn what_nobody_can_find_is_never_written_or_deleted() {
    const DELETED: &str = r#"{"entity_ids":["entity-00f1"],"token_counts":[87],"reason":"x"}"#;
    const WRITTEN: &str = r#"{"qdrant_point_id":"5b0c7a52-6f0e-4f0a-9d57-2f4d0a9be1c3",
        "vector":[1],"entity":{"entity_id":"entity-00f1"}}"#;
    let key = Some("8c1d6d0e-5b1f-5c53-9a77-0d3c1b9f2a10:entity-00f1");
    let write = |rest, name: &str, order_only, payload| {
        let mut headers = operation(name);
        if order_only {
            headers.set("key-use", "order");
        }
        form(rest).write(&item(&headers, key, payload)).map(|write| write.id)
    };
    for payload in [DELETED, "{}", "null", "", r#"{"id":"entity-00f1"}"#] {
        let dead = write("", "DELETE", true, payload).unwrap_err();
        assert!(dead.contains("nothing says which point is meant"), "{dead}");
    }
    for name in ["INSERT", "UPDATE"] {
        let dead = write("", name, true, WRITTEN).unwrap_err();
        assert!(dead.contains("field `id` is missing"), "{dead}");
        let own = write("id_field = 'qdrant_point_id'", name, true, WRITTEN);
        assert_eq!(own.unwrap().to_string(), "5b0c7a52-6f0e-4f0a-9d57-2f4d0a9be1c3");
    }
    // The settings say where ids are: a key is none of them.
    for order_only in [false, true] {
        let dead = write("id_field = 'qdrant_point_id'", "DELETE", order_only, DELETED);
        assert!(dead.unwrap_err().contains("field `qdrant_point_id`"));
    }
    let headers = operation("UPDATE");
    let nameless = form("").write(&item(&headers, None, r#"{"vector":[1]}"#)).unwrap_err();
    assert!(nameless.contains("needs a key, or field `id`"), "{nameless}");
}

#[test]
fn an_item_that_is_no_write_is_at_fault() {
    let write = |name: &str, payload: &str| {
        form("").write(&item(&operation(name), Some("7"), payload)).map(|_| ()).unwrap_err()
    };
    assert!(write("TRUNCATE", "{}").contains("none of INSERT, UPDATE, DELETE"));
    assert!(write("update", "{}").contains("field `vector` holds no vector"));
    assert!(write("insert", r#"{"vector":"secret"}"#).contains("needs a list"));
    assert!(!write("insert", r#"{"vector":"secret"}"#).contains("secret"));
    assert!(write("insert", "7").contains("no JSON object"));
}

#[test]
fn names_that_no_collection_can_have_are_refused() {
    let config: Config = toml::from_str("url = 'https://h'").unwrap();
    let form = Form::new(&config).unwrap();
    let write = |topic: &str| {
        let headers = Headers::none();
        form.write(&Item { topic, ..item(headers, None, r#"{"vector":[1]}"#) }).map(|_| ())
    };
    let long = "x".repeat(256);
    for topic in ["a/b", "..", ".", "a?b", "a\0b", "a\u{1f}", "a\\b", &long] {
        assert!(write(topic).unwrap_err().contains("no collection can have"), "{topic}");
    }
    for topic in ["orders.v1", "Köln", "a b", "..."] {
        assert_eq!(write(topic), Ok(()), "{topic}");
    }
    assert!(write("").unwrap_err().contains("no topic"));
}

#[test]
fn writes_stay_in_their_order() {
    let upsert = |id| Write {
        collection: String::new(),
        id: PointId::Number(id),
        point: Some(format!("{{\"id\":{id}}}")),
    };
    let delete = |id| Write { point: None, ..upsert(id) };
    let writes = [
        upsert(1),
        upsert(2),
        delete(1),
        delete(3),
        upsert(1),
        // A second write to the same point is an operation of its own.
        upsert(1),
        upsert(2),
    ];
    let Batch { body, operations } = batch(writes.iter());
    let upserts = |ids: &[u64]| {
        let points: Vec<Value> = ids.iter().map(|id| json!({ "id": id })).collect();
        json!({ "upsert": { "points": points } })
    };
    let expected = json!({ "operations": [
        upserts(&[1, 2]), { "delete": { "points": [1, 3] } }, upserts(&[1]), upserts(&[1, 2]),
    ] });
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), expected);
    assert_eq!(operations, 4);
    let none = batch([].iter());
    assert_eq!((none.body.as_str(), none.operations), ("{\"operations\":[]}", 0));
}
