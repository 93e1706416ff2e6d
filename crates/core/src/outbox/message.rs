//! One outbox entry.

use super::{KeyHash, Lane, MessageId, Position, StuckState};
use crate::{
    Headers, StoreError,
    error::{Class, Kind},
    limits::{MAX_DELAY, MAX_HEADER_BYTES, MAX_KEY_BYTES, MAX_PAYLOAD_BYTES, MAX_TOPIC_BYTES},
    sink::Item,
};
use std::time::{Duration, SystemTime};

/// A message to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewMessage {
    /// By which it is routed.
    pub topic: String,
    /// Messages with the same key are delivered in order. Without one there is no order.
    pub key: Option<String>,
    /// What is delivered.
    pub payload: Vec<u8>,
    /// Beside the payload.
    pub headers: Headers,
    /// It is not delivered before this has passed, from now by the store's clock.
    pub delay: Option<Duration>,
}

impl NewMessage {
    /// Refuses what no store would take.
    pub fn check(&self) -> Result<(), StoreError> {
        let problem = self.topic_problem().or_else(|| self.key_problem());
        refuse(problem.or_else(|| self.problem()).or_else(|| self.json_problem()))
    }

    /// Refuses what no sink should get of what others have stored. They may have keys with control characters: to
    /// refuse those now would not take them back. With `any_payload`, it may be whatever it is declared to be.
    pub fn check_stored(&self, any_payload: bool) -> Result<(), StoreError> {
        let problem = self.topic_problem().or_else(|| self.problem());
        refuse(problem.or_else(|| if any_payload { None } else { self.json_problem() }))
    }

    fn topic_problem(&self) -> Option<String> {
        let flawed =
            self.topic.is_empty() || self.topic.chars().any(|c| c.is_control() || c == '*');
        flawed
            .then(|| "a topic has at least one character, no `*` and no control characters".into())
    }

    fn key_problem(&self) -> Option<String> {
        let flawed = |key: &String| key.is_empty() || key.chars().any(char::is_control);
        self.key.as_ref().is_some_and(flawed).then(|| {
            "a key has at least one character and no control characters; leave it out for no order".into()
        })
    }

    fn problem(&self) -> Option<String> {
        let headers = self.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        too_long_names(&self.topic, self.key.as_deref())
            .or_else(|| too_long("payload", self.payload.len(), MAX_PAYLOAD_BYTES))
            .or_else(|| too_long("set of headers", headers, MAX_HEADER_BYTES))
            .or_else(|| {
                let too_long = self.delay.is_some_and(|delay| delay > MAX_DELAY);
                too_long.then(|| "a delay is at most 100 years".into())
            })
            .or_else(|| nul_in_headers(&self.headers))
    }

    fn json_problem(&self) -> Option<String> {
        if !self.headers.declares_json() {
            return None;
        }
        let error = serde_json::from_slice::<serde::de::IgnoredAny>(&self.payload).err()?;
        let (line, column) = (error.line(), error.column());
        Some(format!(
            "the payload is no JSON: see line {line}, column {column}; declare another content-type if it is not \
             meant to be"
        ))
    }
}

fn refuse(problem: Option<String>) -> Result<(), StoreError> {
    problem.map_or(Ok(()), |problem| {
        Err(StoreError::new(Kind::Refused, Class::Permanent, "publish", problem))
    })
}

fn nul_in_headers(headers: &Headers) -> Option<String> {
    let has_nul = headers.iter().any(|(name, value)| name.contains('\0') || value.contains('\0'));
    has_nul.then(|| "a header must not contain NUL".to_owned())
}

/// A message as a relay reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// What people know it by in its outbox.
    pub id: MessageId,
    /// Its place in the order in which its lane is read.
    pub position: Position,
    /// What sinks and people know it by: no other outbox has the same.
    pub name: String,
    /// Its lane.
    pub lane: Lane,
    /// By which it is routed.
    pub topic: String,
    /// What must stay in order.
    pub key: Option<String>,
    /// Beside the payload.
    pub headers: Headers,
    /// What is delivered.
    pub payload: Vec<u8>,
    /// By the store's clock, in milliseconds since 1970.
    pub published_ms: i64,
    /// Where it was read from.
    pub origin: Origin,
    /// Why it cannot be read as it was stored, if so. What is no text is shown with replacement characters then, and
    /// no sink gets it.
    pub damage: Option<String>,
}

impl Message {
    /// The name by which consumers know a message again. Its id alone would not do: a store that went back in time
    /// gives the same ids to other messages, and consumers would take those for duplicates.
    pub fn name_of(outbox: &str, published: u128, id: &MessageId) -> String {
        format!("{outbox}-{published:x}-{id}")
    }

    /// As a sink gets it.
    pub fn item(&self) -> Item<'_> {
        let since_1970 = Duration::from_millis(self.published_ms.unsigned_abs());
        Item {
            id: &self.name,
            topic: &self.topic,
            key: self.key.as_deref(),
            ordered: true,
            headers: &self.headers,
            payload: &self.payload,
            published_at: Some(SystemTime::UNIX_EPOCH + since_1970),
        }
    }

    /// Why no sink should get it: tables may hold what was written by others, or by versions that did not look.
    pub fn flaw(&self) -> Option<String> {
        self.damage.clone().or_else(|| too_long_names(&self.topic, self.key.as_deref()))
    }

    /// What it takes in memory, about.
    pub fn bytes(&self) -> usize {
        self.payload.len() + self.topic.len() + self.key.as_ref().map_or(0, String::len)
    }

    /// What its key is known by.
    pub fn key_hash(&self) -> Option<KeyHash> {
        self.key.as_deref().map(KeyHash::of)
    }
}

fn too_long(what: &str, is: usize, most: usize) -> Option<String> {
    (is > most).then(|| format!("the {what} has {is} bytes; {most} is the most"))
}

fn too_long_names(topic: &str, key: Option<&str>) -> Option<String> {
    too_long("topic", topic.len(), MAX_TOPIC_BYTES)
        .or_else(|| too_long("key", key.map_or(0, str::len), MAX_KEY_BYTES))
}

/// Where a message was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The lane itself.
    Lane {
        /// When it is due, if not now.
        due_in: Option<Duration>,
    },
    /// It was set aside for this sink before.
    Aside {
        /// How many attempts have failed.
        attempts: u32,
        /// For which sink.
        sink: String,
        /// What it waited for: its next attempt, its time, or another of its key that is due as well.
        waited_for: StuckState,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyed(key: &str) -> NewMessage {
        let (topic, payload) = ("t".to_owned(), b"1".to_vec());
        NewMessage { topic, key: Some(key.to_owned()), payload, ..NewMessage::default() }
    }

    #[test]
    fn a_key_has_characters_and_none_that_control() {
        for key in ["", "\0", "a\nb", "\u{1f}", "\u{7f}", "\u{80}", "\u{9f}k"] {
            let error = keyed(key).check().unwrap_err().to_string();
            assert!(error.ends_with("leave it out for no order"), "{key:?}: {error}");
        }
        for key in [" ", "*", "a b", "\u{a0}", "\u{ad}", "\u{200b}", "\u{fffe}", "🦀"] {
            keyed(key).check().unwrap();
        }
    }

    #[test]
    fn what_others_stored_keeps_its_key() {
        keyed("a\nb").check_stored(false).unwrap();
        assert!(NewMessage { topic: "a\nb".to_owned(), ..keyed("k") }.check_stored(false).is_err());
        assert!(keyed(&"k".repeat(MAX_KEY_BYTES + 1)).check_stored(false).is_err());
    }
}
