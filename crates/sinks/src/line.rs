//! An item as one line of JSON, for files and for standard output.

use crate::time::rfc3339;
use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Serialize;
use serde_json::value::RawValue;
use tidegate_core::{Headers, sink::Item};

#[derive(Serialize)]
struct Line<'a> {
    id: &'a str,
    topic: &'a str,
    key: Option<&'a str>,
    headers: &'a Headers,
    published_at: Option<String>,
    #[serde(flatten)]
    payload: Payload<'a>,
}

#[derive(Serialize)]
enum Payload<'a> {
    #[serde(rename = "payload")]
    Json(&'a RawValue),
    #[serde(rename = "payload_base64")]
    Base64(String),
}

/// Adds an item's line to `out`, with a line break at its end and nowhere else.
pub fn push(out: &mut Vec<u8>, item: &Item<'_>) -> Result<(), String> {
    let begin = out.len();
    let line = Line {
        id: item.id,
        topic: item.topic,
        key: item.key,
        headers: item.headers,
        published_at: item.published_at.and_then(rfc3339),
        payload: payload(item),
    };
    serde_json::to_writer(&mut *out, &line).map_err(|_| "the item makes no line".to_owned())?;
    // In JSON, line breaks stand between tokens only.
    out[begin..].iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|it| *it = b' ');
    out.push(b'\n');
    Ok(())
}

/// JSON as it was written, if it is JSON; else any bytes.
fn payload<'a>(item: &Item<'a>) -> Payload<'a> {
    let json = item.headers.declares_json().then(|| serde_json::from_slice(item.payload).ok());
    match json.flatten() {
        Some(json) => Payload::Json(json),
        None => Payload::Base64(STANDARD.encode(item.payload)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    fn line(item: &Item<'_>) -> String {
        let mut out = Vec::new();
        push(&mut out, item).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_item_is_one_line() {
        let headers = Headers::from_iter([("a", "x\ny")]);
        let item = Item {
            topic: "orders",
            key: Some("7"),
            headers: &headers,
            published_at: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1)),
            ..Item::record("m-1", "{\"n\":\r\n1.50}")
        };
        let expected = "{\"id\":\"m-1\",\"topic\":\"orders\",\"key\":\"7\",\"headers\":{\"a\":\"x\\ny\"},\
                        \"published_at\":\"1970-01-01T00:00:01Z\",\"payload\":{\"n\":  1.50}}\n";
        assert_eq!(line(&item), expected);
    }

    #[test]
    fn what_is_no_json_is_kept_as_bytes() {
        let text = Headers::from_iter([("content-type", "text/plain")]);
        let of = |headers, payload| {
            let line = line(&Item { headers, payload, ..Item::record("1", "") });
            line.split_once("null,")
                .map(|(_, rest)| rest.rsplit_once("null,").unwrap().1.to_owned())
        };
        let bytes = |text: &str| Some(format!("\"payload_base64\":\"{text}\"}}\n"));
        assert_eq!(of(&text, b"7"), bytes("Nw=="));
        assert_eq!(of(Headers::none(), b"\xff"), bytes("/w=="));
        assert_eq!(of(Headers::none(), b""), bytes(""));
        assert_eq!(of(Headers::none(), b"7"), Some("\"payload\":7}\n".to_owned()));
    }
}
