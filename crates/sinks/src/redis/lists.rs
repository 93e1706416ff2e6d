//! Lists, as Brighter's consumers read them.
//!
//! A message is a frame under a key of its own. Each consumer has a list in which the numbers of these keys
//! stand, and has named that list in a set. Frame and numbers are written in one transaction, so that no
//! consumer finds a number without its frame. A message that no consumer would get is not done.

use super::{answer, config::Config, connection::Connection};
use crate::{
    ConfigError,
    brighter::{Message, redis::frame},
    broker::Reply,
};
use ::redis::{Cmd, Pipeline, RedisError, Value, cmd, from_redis_value, pipe};
use futures_util::future::try_join;
use std::{num::NonZeroU64, time::SystemTime};
use tidegate_core::sink::{Item, Verdict};

/// How frames and numbers are written.
#[derive(Clone, Debug)]
pub struct Lists {
    ttl: Option<NonZeroU64>,
}

impl Lists {
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        for (key, is_set) in
            [("stream", config.stream.is_some()), ("maxlen", config.maxlen.is_some())]
        {
            if is_set {
                let problem = "is for streams, and Brighter's consumers read lists: remove it, or use \
                               envelope = \"tidegate\"";
                return Err(ConfigError::new(key, problem));
            }
        }
        Ok(Self { ttl: config.ttl })
    }

    /// Writes a message for each consumer that there is. Afterwards all of them find it, or none.
    pub async fn push(&self, connection: &Connection, item: &Item<'_>) -> Reply {
        let frame = match self.frame(item, connection.largest()) {
            Ok(frame) => frame,
            Err(reason) => return Ok(Verdict::Dead(reason)),
        };
        let topic = item.topic;
        let wanted = try_join(connection.ask(members(topic)), connection.ask(next(topic))).await;
        let (queues, number) = match wanted.and_then(|(queues, number)| read(queues, number)) {
            Ok(known) => known,
            Err(error) => return answer::refused(&error, &format!("{topic}.*"), answer::LIST),
        };
        if queues.is_empty() {
            return Ok(Verdict::Retry(format!(
                "no consumer would get it: the set `{topic}.queues` is empty; start a consumer"
            )));
        }
        match connection.ask_all(&self.write(topic, number, &frame, &queues)).await {
            Ok(_) => Ok(Verdict::Done),
            Err(error) => answer::refused(&error, &format!("{topic}.queues"), answer::LIST),
        }
    }

    fn frame(&self, item: &Item<'_>, largest: usize) -> Result<String, String> {
        let frame = frame(&Message::read(item, SystemTime::now())?)?;
        answer::fits(frame.len(), largest).map(|()| frame)
    }

    fn write(&self, topic: &str, number: i64, frame: &str, queues: &[Vec<u8>]) -> Pipeline {
        let mut write = pipe();
        write.atomic().cmd("SET").arg(format!("{topic}.{number}")).arg(frame);
        if let Some(seconds) = self.ttl {
            write.arg("EX").arg(seconds.get());
        }
        for queue in queues {
            write.cmd("RPUSH").arg(queue).arg(number);
        }
        write
    }
}

fn members(topic: &str) -> Cmd {
    let mut command = cmd("SMEMBERS");
    command.arg(format!("{topic}.queues"));
    command
}

fn next(topic: &str) -> Cmd {
    let mut command = cmd("INCR");
    command.arg(format!("{topic}.nextid"));
    command
}

fn read(queues: Value, number: Value) -> Result<(Vec<Vec<u8>>, i64), RedisError> {
    Ok((from_redis_value(queues)?, from_redis_value(number)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(rest: &str) -> Result<Lists, String> {
        let text = format!("url = 'redis://h'\nenvelope = 'brighter'\n{rest}");
        Lists::new(&toml::from_str(&text).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn frame_and_numbers_are_one_transaction() {
        let queues = [b"a".to_vec(), b"b".to_vec()];
        let write = lists("ttl = 60").unwrap().write("orders", 7, "FRAME", &queues);
        let expected = "*1\r\n$5\r\nMULTI\r\n\
            *5\r\n$3\r\nSET\r\n$8\r\norders.7\r\n$5\r\nFRAME\r\n$2\r\nEX\r\n$2\r\n60\r\n\
            *3\r\n$5\r\nRPUSH\r\n$1\r\na\r\n$1\r\n7\r\n\
            *3\r\n$5\r\nRPUSH\r\n$1\r\nb\r\n$1\r\n7\r\n\
            *1\r\n$4\r\nEXEC\r\n";
        assert_eq!(String::from_utf8(write.get_packed_pipeline()).unwrap(), expected);
        let write = lists("").unwrap().write("orders", 7, "FRAME", &[]);
        let text = String::from_utf8(write.get_packed_pipeline()).unwrap();
        assert!(!text.contains("EX\r\n"), "without a time to live it stays");
    }

    #[test]
    fn what_is_for_streams_is_refused() {
        for (key, value) in [("stream", "'{topic}'"), ("maxlen", "9")] {
            let error = lists(&format!("{key} = {value}")).unwrap_err();
            assert!(error.starts_with(&format!("`{key}` is for streams")), "{error}");
        }
    }

    #[test]
    fn what_consumers_could_not_read_is_the_items_fault() {
        let lists = lists("").unwrap();
        let refused = |payload: &str| {
            let item = Item { topic: "t", ..Item::record("1", payload) };
            lists.frame(&item, 600).unwrap_err()
        };
        assert!(refused("{\n}").starts_with("its payload has several lines"));
        assert!(refused(&"x".repeat(600)).contains("proto-max-bulk-len 600"));
    }
}
