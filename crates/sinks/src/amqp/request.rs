//! An item → a message: its routing key and its properties.

use super::{
    brighter,
    config::{Config, Declare},
};
use crate::{
    ConfigError, Envelope, beside,
    config::TO_TOPIC,
    pattern::{Pattern, verbatim},
};
use lapin::{
    BasicProperties,
    types::{AMQPValue, FieldTable, LongString, ShortString},
};
use std::time::{SystemTime, UNIX_EPOCH};
use tidegate_core::{
    headers::{CONTENT_TYPE, JSON},
    sink::Item,
};

/// What a message's properties take up beside its headers, at most.
pub(super) const OTHER_PROPERTIES: usize = 1024;

/// Written to disk before it is confirmed, if the queue is durable.
const PERSISTENT: u8 = 2;

/// How messages are made.
#[derive(Clone, Debug)]
pub struct Form {
    exchange: ShortString,
    pub routing_key: Pattern,
    declares: bool,
    envelope: Envelope,
}

/// A message to publish.
#[derive(Clone, Debug)]
pub struct Request {
    pub routing_key: ShortString,
    pub properties: BasicProperties,
}

impl Form {
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        let declares = matches!(config.declare, Some(Declare::Quorum));
        if declares && !config.exchange.is_empty() {
            let problem = "declares queues, but only the default exchange knows them by their \
                           name: remove it, or remove `exchange`";
            return Err(ConfigError::new("declare", problem));
        }
        let exchange = ShortString::try_new(config.exchange.as_str())
            .map_err(|_| ConfigError::new("exchange", "is longer than 255 bytes"))?;
        let routing_key = config.routing_key.as_deref().unwrap_or(TO_TOPIC);
        let routing_key = Pattern::parse("routing_key", routing_key)?;
        Ok(Self { exchange, routing_key, declares, envelope: config.envelope })
    }

    /// Where messages go. Empty for the default exchange.
    pub fn exchange(&self) -> &str {
        self.exchange.as_str()
    }

    /// Whether there must be a queue for each routing key.
    pub fn declares(&self) -> bool {
        self.declares
    }

    /// The message for an item, or what is wrong with the item. Properties are sent in one frame.
    pub fn request(&self, item: &Item<'_>, frame_max: usize) -> Result<Request, String> {
        let routing_key = self.routing_key.fill(item, verbatim)?;
        if self.declares && routing_key.starts_with("amq.") {
            return Err(format!("the queue `{routing_key}` is reserved by RabbitMQ"));
        }
        let properties = match self.envelope {
            Envelope::Tidegate => properties(item, frame_max)?,
            Envelope::Brighter => brighter::properties(item, SystemTime::now(), frame_max)?,
        };
        let properties = properties.with_delivery_mode(PERSISTENT);
        Ok(Request { routing_key: short("routing key", &routing_key)?, properties })
    }
}

fn properties(item: &Item<'_>, frame_max: usize) -> Result<BasicProperties, String> {
    let content_type = item.headers.get(CONTENT_TYPE).unwrap_or(JSON);
    let properties = BasicProperties::default()
        .with_message_id(short("id", item.id)?)
        .with_content_type(short(CONTENT_TYPE, content_type)?)
        .with_headers(headers(item, frame_max)?);
    let published = item.published_at.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    Ok(match published {
        Some(published) => properties.with_timestamp(published.as_secs()),
        None => properties,
    })
}

fn headers(item: &Item<'_>, frame_max: usize) -> Result<FieldTable, String> {
    let mut table = FieldTable::default();
    let mut size = OTHER_PROPERTIES;
    for (name, value) in beside::headers(item) {
        // A length of one byte and one of four, and the value's type.
        size += name.len() + value.len() + 6;
        let value = AMQPValue::LongString(LongString::from(value));
        table.insert(short("header", harmless(name))?, value);
    }
    fit(size, frame_max)?;
    Ok(table)
}

/// RabbitMQ routes by lists under these names, in this case only, and closes the channel for a text there.
fn harmless(name: &str) -> &str {
    match name {
        "CC" => "cc",
        "BCC" => "bcc",
        name => name,
    }
}

/// Properties are sent in one frame.
pub(super) fn fit(size: usize, frame_max: usize) -> Result<(), String> {
    if size > frame_max {
        return Err(format!("its headers are larger than RabbitMQ takes, {frame_max} bytes"));
    }
    Ok(())
}

/// Names are at most 255 bytes long.
pub(super) fn short(what: &str, text: &str) -> Result<ShortString, String> {
    ShortString::try_new(text).map_err(|_| format!("its {what} is longer than 255 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tidegate_core::Headers;

    const FRAME: usize = 131_072;

    fn form(rest: &str) -> Result<Form, String> {
        let config = toml::from_str(&format!("url = 'amqp://h'\n{rest}")).unwrap();
        Form::new(&config).map_err(|error| error.to_string())
    }

    fn refused(rest: &str, item: &Item<'_>) -> String {
        form(rest).unwrap().request(item, FRAME).unwrap_err()
    }

    #[test]
    fn a_message_has_all_that_an_item_has() {
        let own = Headers::from_iter([
            ("content-type", "text/plain"),
            ("X-Tenant", "eu"),
            ("BCC", "not a list"),
        ]);
        let published_at = Some(UNIX_EPOCH + Duration::from_millis(7_900));
        let item = Item {
            topic: "orders",
            key: Some("k"),
            headers: &own,
            published_at,
            ..Item::record("m1", "{}")
        };
        let request = form("").unwrap().request(&item, FRAME).unwrap();
        assert_eq!(request.routing_key.as_str(), "orders");
        let properties = request.properties;
        assert_eq!(*properties.delivery_mode(), Some(2));
        assert_eq!(*properties.timestamp(), Some(7));
        assert_eq!(properties.message_id().as_ref().unwrap().as_str(), "m1");
        assert_eq!(properties.content_type().as_ref().unwrap().as_str(), "text/plain");
        let headers = properties.headers().as_ref().unwrap().inner();
        let names: Vec<_> = headers.keys().map(ShortString::as_str).collect();
        let expected = ["X-Tenant", "bcc", "content-type", "tidegate-key", "tidegate-topic"];
        assert_eq!(names, expected);
        let plain =
            form("").unwrap().request(&Item { topic: "t", ..Item::record("1", "{}") }, FRAME);
        let content_type = plain.unwrap().properties.content_type().clone();
        assert_eq!(content_type.unwrap().as_str(), "application/json");
    }

    #[test]
    fn what_cannot_be_sent_is_the_items_fault() {
        let item = Item { topic: "t", ..Item::record("1", "{}") };
        let long = "x".repeat(256);
        let topic = Item { topic: &long, ..item };
        assert_eq!(refused("", &topic), "its routing key is longer than 255 bytes");
        assert_eq!(refused("", &Item { id: &long, ..item }), "its id is longer than 255 bytes");
        let own = Headers::from_iter([("a", "x".repeat(FRAME))]);
        assert!(refused("", &Item { headers: &own, ..item }).contains("headers are larger"));
        assert!(refused("routing_key = '{key}'", &item).contains("no key"));
        let own = Item { topic: "amq.x", ..item };
        assert!(refused("declare = 'quorum'", &own).contains("reserved"));
    }

    #[test]
    fn queues_are_declared_for_the_default_exchange_only() {
        assert!(form("declare = 'quorum'").unwrap().declares());
        let error = form("declare = 'quorum'\nexchange = 'x'").unwrap_err();
        assert!(error.starts_with("`declare` declares queues, but only"), "{error}");
    }
}
