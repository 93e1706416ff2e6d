//! An item → a message: its subject, headers and payload.

use super::config::Config;
use crate::{
    ConfigError, beside,
    config::TO_TOPIC,
    pattern::{Pattern, verbatim},
};
use async_nats::{HeaderMap, HeaderName, HeaderValue, jetstream::message::PublishMessage};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use std::borrow::Cow;
use tidegate_core::sink::Item;

/// What a key may not put into a subject: blanks, what parts it, and wildcards. `%` begins what
/// stands for one of them.
const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'.').add(b'*').add(b'>').add(b'%');

/// How messages are made.
#[derive(Clone, Debug)]
pub struct Form {
    pub subject: Pattern,
}

/// A message to publish.
#[derive(Clone, Debug)]
pub struct Request {
    pub subject: String,
    pub message: PublishMessage,
}

impl Form {
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        let subject = config.subject.as_deref().unwrap_or(TO_TOPIC);
        let subject = Pattern::parse("subject", subject)?;
        // As if all places were filled well: what is wrong then is wrong for all items.
        let example = valid(subject.literals().join("x"));
        example.map_err(|problem| ConfigError::new("subject", format!("cannot be: {problem}")))?;
        Ok(Self { subject })
    }

    /// The message for an item, or what is wrong with the item.
    pub fn request(&self, item: &Item<'_>) -> Result<Request, String> {
        let subject = self.subject(item)?;
        let message =
            PublishMessage::build().headers(headers(item)?).payload(item.payload.to_vec().into());
        Ok(Request { subject, message })
    }

    fn subject(&self, item: &Item<'_>) -> Result<String, String> {
        let key: Option<Cow<'_, str>> =
            item.key.map(|key| utf8_percent_encode(key, ESCAPED).into());
        valid(self.subject.fill(&Item { key: key.as_deref(), ..*item }, verbatim)?)
    }
}

/// A subject that a message may have. What begins with `$` or `_INBOX` is NATS's own: a topic must
/// not reach JetStream's API.
fn valid(subject: String) -> Result<String, String> {
    let problem = if subject.chars().any(|c| c.is_whitespace() || c.is_control()) {
        "has a blank in it"
    } else if subject.split('.').any(str::is_empty) {
        "has nothing before, behind or between dots"
    } else if subject.split('.').any(|token| matches!(token, "*" | ">")) {
        "has a wildcard in it"
    } else if subject.starts_with('$') || subject.starts_with("_INBOX.") {
        "is reserved by NATS"
    } else {
        return Ok(subject);
    };
    Err(format!("the subject `{}` {problem}", subject.escape_debug()))
}

fn headers(item: &Item<'_>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in beside::headers(item) {
        let unsendable = || format!("its header `{}` cannot be sent", name.escape_debug());
        let name: HeaderName = harmless(name).parse().map_err(|_| unsendable())?;
        let value: HeaderValue = value.parse().map_err(|_| unsendable())?;
        headers.insert(name, value);
    }
    let id: HeaderValue = item.id.parse().map_err(|_| "its id cannot be sent".to_owned())?;
    headers.insert(async_nats::header::NATS_MESSAGE_ID, id);
    Ok(headers)
}

/// JetStream obeys headers such as `Nats-Rollup`, which empties a stream, in this case only. A message must
/// not command it.
fn harmless(name: &str) -> Cow<'_, str> {
    match name.get(..5) {
        Some(prefix) if prefix.eq_ignore_ascii_case("nats-") => name.to_ascii_lowercase().into(),
        _ => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::Headers;

    fn form(subject: &str) -> Result<Form, String> {
        let config = toml::from_str(&format!("url = 'nats://h'\nsubject = '{subject}'")).unwrap();
        Form::new(&config).map_err(|error| error.to_string())
    }

    fn subject(template: &str, topic: &str, key: &str) -> Result<String, String> {
        let item = Item { topic, key: Some(key), ..Item::record("1", "{}") };
        Ok(form(template)?.request(&item)?.subject)
    }

    #[test]
    fn a_key_is_one_token_of_a_subject() {
        assert_eq!(subject("{topic}", "orders.created", "k").unwrap(), "orders.created");
        let filled = subject("{topic}.{key}", "orders", "a b.c>*%é").unwrap();
        assert_eq!(filled, "orders.a%20b%2Ec%3E%2A%25%C3%A9");
    }

    #[test]
    fn an_item_whose_subject_cannot_be_is_at_fault() {
        let refused = |topic: &str| subject("{topic}", topic, "k").unwrap_err();
        assert_eq!(refused("a b"), "the subject `a b` has a blank in it");
        assert_eq!(refused("a\nb"), "the subject `a\\nb` has a blank in it");
        assert!(refused("a..b").contains("between dots"));
        assert!(refused("a.").contains("behind"));
        assert!(refused("a.*").contains("wildcard"));
        assert!(refused("$JS.API.STREAM.PURGE.x").contains("reserved"));
        assert!(refused("").contains("no topic"));
    }

    #[test]
    fn a_subject_that_can_never_be_is_refused_at_once() {
        let refused = |template: &str| form(template).unwrap_err();
        assert!(refused("a {topic}").starts_with("`subject` cannot be: the subject `a x`"));
        assert!(refused("{topic}.>").contains("wildcard"));
        assert!(refused("{nothing}").contains("use {topic}, {key}"));
    }

    #[test]
    fn headers_travel_with_what_tells_messages_apart() {
        let own = Headers::from_iter([
            ("content-type", "text/plain"),
            ("X-Tenant", "x"),
            ("Nats-Rollup", "all"),
        ]);
        let item = Item { topic: "t", key: Some("k k"), headers: &own, ..Item::record("7", "{}") };
        let request = form("{topic}").unwrap().request(&item).unwrap();
        let headers = request.message.outbound_message(request.subject).headers.unwrap();
        let expected = [
            ("content-type", "text/plain"),
            ("X-Tenant", "x"),
            ("nats-rollup", "all"),
            ("tidegate-topic", "t"),
            ("tidegate-key", "k k"),
            ("Nats-Msg-Id", "7"),
        ];
        for (name, value) in expected {
            assert_eq!(headers.get(name).map(|it| it.as_str()), Some(value), "{name}");
        }
        let own = Headers::from_iter([("a b", "x")]);
        let item = Item { topic: "t", headers: &own, ..Item::record("7", "{}") };
        let error = form("{topic}").unwrap().request(&item).unwrap_err();
        assert_eq!(error, "its header `a b` cannot be sent");
    }
}
