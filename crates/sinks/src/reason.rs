//! Why something failed, as the system says it: short, on one line, fit for a terminal.

use serde_json::Value;

/// Enough to understand a message, not enough for a page of markup.
const MAX_CHARS: usize = 300;

/// One line of at most 300 characters.
pub fn clean(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let mut line = String::new();
    for word in words.filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// What an answer says: its status, and the message in its body.
pub fn of(status: u16, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let message = match serde_json::from_str::<Value>(&text) {
        Ok(value) => message(&value).map(str::to_owned).unwrap_or_else(|| text.into_owned()),
        Err(_) => text.into_owned(),
    };
    match clean(&message) {
        message if message.is_empty() => format!("it answered {status}"),
        message => format!("it answered {status}: {message}"),
    }
}

/// The message in a JSON body: services put it in one of a few places.
pub fn message(value: &Value) -> Option<&str> {
    const PLACES: [&str; 10] = [
        "/error/message",
        "/error",
        "/message",
        "/detail",
        "/error_description",
        "/errors/0/message",
        "/errors/0/detail",
        "/errors/0",
        "/status/error",
        "/title",
    ];
    PLACES.iter().find_map(|place| value.pointer(place)?.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_found_where_services_put_them() {
        let cases = [
            (r#"{"error":"no"}"#, "it answered 400: no"),
            (r#"{"error":{"code":"7","message":"no"}}"#, "it answered 400: no"),
            (r#"{"title":"t","detail":"no"}"#, "it answered 400: no"),
            (r#"{"errors":[{"message":"no"}]}"#, "it answered 400: no"),
            (r#"{"status":{"error":"no"},"time":0.1}"#, "it answered 400: no"),
            (r#"{"other":1}"#, r#"it answered 400: {"other":1}"#),
            ("plain\r\n\u{1b}[31mtext", "it answered 400: plain [31mtext"),
            ("", "it answered 400"),
        ];
        for (body, expected) in cases {
            assert_eq!(of(400, body.as_bytes()), expected);
        }
        assert_eq!(of(400, b"\xff\xfe"), "it answered 400: \u{fffd}\u{fffd}");
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        let cut = clean(&"ü".repeat(1000));
        assert_eq!(cut, format!("{}…", "ü".repeat(300)));
        assert_eq!(clean(&"ü".repeat(300)).chars().count(), 300);
    }
}
