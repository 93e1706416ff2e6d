//! An item → a message, or why it is none.

use super::{
    HEADERS, Item, get_number, get_text,
    name::{
        ASIDE, BODY, CREATED_TIME, DELIVERY_TIME, HEADER_BAG, MESSAGE_ID, NOT_BEFORE, OUTSTANDING,
        PARTITION_KEY, TOPIC, TOPIC_SHARD,
    },
    size,
};
use crate::ticks::Ticks;
use aws_sdk_dynamodb::types::AttributeValue;
use tidegate_core::{
    Headers, Message, MessageId, NewMessage, StoreError,
    outbox::{KeyHash, LANES, Lane, Origin, Position},
};

/// Names the producer to use, within the application: of no meaning outside.
const LOCAL: [&str; 1] = ["paramore.brighter.ProducerTopic"];

/// What Brighter takes for what an item does not say.
const DEFAULTS: [(&str, &str); 2] = [("content-type", "text/plain"), ("message-type", "MT_NONE")];

/// An item of the outbox.
#[derive(Clone, Debug)]
pub struct Found {
    pub id: String,
    pub lane: Lane,
    /// The shard that it is stored in, as it is written.
    pub shard: String,
    /// When it was made, for as long as it is outstanding.
    pub outstanding: Option<Ticks>,
    /// When it was made.
    pub created: Ticks,
    /// It is not to be delivered before.
    pub not_before: Option<Ticks>,
    pub is_delivered: bool,
    /// Where it is set aside.
    pub aside: Option<String>,
    pub message: NewMessage,
    /// How large the item is, as far as it was read.
    pub bytes: usize,
    /// Why it is no message.
    pub problem: Option<String>,
}

impl Found {
    /// Whether it was delivered, and nobody wants that again.
    pub fn is_sent(&self) -> bool {
        self.is_delivered && self.outstanding.is_none() && self.aside.is_none()
    }

    /// The message, as a relay gets it.
    pub fn message(self, position: Position, origin: Origin) -> Message {
        let NewMessage { topic, key, payload, headers, .. } = self.message;
        Message {
            id: MessageId::text(self.id.as_str()),
            position,
            name: self.id,
            lane: self.lane,
            topic,
            key,
            headers,
            payload,
            published_ms: self.created.unix_ms(),
            origin,
            damage: self.problem,
        }
    }
}

/// Reads an item. `None` if it has no id: then it is not from a table of messages.
pub fn decode(item: &Item) -> Option<Found> {
    let id = get_text(item, MESSAGE_ID)?.to_owned();
    let mut problem = None;
    let topic = get_text(item, TOPIC).unwrap_or_default().to_owned();
    let key = get_text(item, PARTITION_KEY).filter(|key| !key.is_empty()).map(str::to_owned);
    let payload = match item.get(BODY) {
        Some(AttributeValue::B(bytes)) => bytes.as_ref().to_vec(),
        // Items of old versions.
        Some(AttributeValue::S(text)) => text.as_bytes().to_vec(),
        Some(_) => {
            problem = Some("its body is neither bytes nor text".to_owned());
            Vec::new()
        }
        None => Vec::new(),
    };
    let headers = headers(item).unwrap_or_else(|why| {
        problem = problem.take().or(Some(why));
        Headers::new()
    });
    let message = NewMessage { topic, key, payload, headers, delay: None };
    // A body need not be what its content type says: Brighter's consumers judge it.
    let problem =
        problem.or_else(|| message.check_stored(true).err().map(|error| in_short(&error)));
    let outstanding: Option<i64> = get_number(item, OUTSTANDING);
    let created = get_number(item, CREATED_TIME).or(outstanding).unwrap_or_default();
    Some(Found {
        lane: lane(message.key.as_deref(), &id),
        shard: get_text(item, TOPIC_SHARD).unwrap_or_default().to_owned(),
        outstanding: outstanding.map(Ticks),
        created: Ticks(created),
        not_before: get_number(item, NOT_BEFORE).map(Ticks),
        is_delivered: item.contains_key(DELIVERY_TIME),
        aside: get_text(item, ASIDE).map(str::to_owned),
        bytes: size(item),
        id,
        message,
        problem,
    })
}

/// The lane of a message: that of its key, whatever its topic and its shard are.
fn lane(key: Option<&str>, id: &str) -> Lane {
    let hash = KeyHash::of(key.unwrap_or(id)).0 as u64;
    Lane((hash % u64::from(LANES)) as u16)
}

fn headers(item: &Item) -> Result<Headers, String> {
    let mut headers = Headers::new();
    for (header, attribute) in HEADERS {
        if let Some(value) = get_text(item, attribute).filter(|value| !value.is_empty()) {
            headers.set(header, value);
        }
    }
    let bag = get_text(item, HEADER_BAG).map(str::trim);
    if let Some(bag) = bag.filter(|bag| !bag.is_empty() && *bag != "null") {
        let read = headers.set_further(bag, &LOCAL);
        read.map_err(|_| "its header bag is no JSON object".to_owned())?;
    }
    for (name, value) in DEFAULTS {
        if headers.get_own(name).is_none() {
            headers.set(name, value);
        }
    }
    Ok(headers)
}

/// Without the name of the operation, which is publishing.
fn in_short(error: &StoreError) -> String {
    let text = error.to_string();
    text.split_once(": ").map_or(text.clone(), |(_, problem)| problem.to_owned())
}
