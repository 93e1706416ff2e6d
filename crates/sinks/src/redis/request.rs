//! An item → an entry of a stream.

use super::{answer, config::Config};
use crate::{
    ConfigError,
    config::TO_TOPIC,
    pattern::{Pattern, verbatim},
};
use ::redis::{Cmd, cmd};
use std::{num::NonZeroU64, time::UNIX_EPOCH};
use tidegate_core::sink::Item;

/// How entries are made.
#[derive(Clone, Debug)]
pub struct Form {
    stream: Pattern,
    maxlen: Option<NonZeroU64>,
}

/// An entry to append.
pub struct Request {
    pub stream: String,
    pub command: Cmd,
}

impl Form {
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        if config.ttl.is_some() {
            let problem =
                "is for lists: streams are bounded by `maxlen`; or use envelope = \"brighter\"";
            return Err(ConfigError::new("ttl", problem));
        }
        let stream = config.stream.as_deref().unwrap_or(TO_TOPIC);
        Ok(Self { stream: Pattern::parse("stream", stream)?, maxlen: config.maxlen })
    }

    /// The entry for an item, or what is wrong with the item.
    pub fn request(&self, item: &Item<'_>, largest: usize) -> Result<Request, String> {
        let stream = self.stream.fill(item, verbatim)?;
        let headers = serde_json::to_string(item.headers)
            .map_err(|error| format!("its headers cannot be written as JSON: {error}"))?;
        answer::fits(item.payload.len().max(headers.len()), largest)?;
        let mut command = cmd("XADD");
        command.arg(&stream);
        if let Some(maxlen) = self.maxlen {
            command.arg("MAXLEN").arg("~").arg(maxlen.get());
        }
        command.arg("*").arg("id").arg(item.id).arg("topic").arg(item.topic);
        if let Some(key) = item.key {
            command.arg("key").arg(key);
        }
        let published = item.published_at.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        if let Some(published) = published {
            command.arg("published_at").arg(published.as_millis().to_string());
        }
        command.arg("headers").arg(headers).arg("payload").arg(item.payload);
        Ok(Request { stream, command })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::redis::Arg;
    use std::time::Duration;
    use tidegate_core::Headers;

    fn words(rest: &str, item: &Item<'_>) -> Vec<String> {
        let config = toml::from_str(&format!("url = 'redis://h'\n{rest}")).unwrap();
        let request = Form::new(&config).unwrap().request(item, 100).unwrap();
        let word = |arg: Arg<&[u8]>| match arg {
            Arg::Simple(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            _ => "?".to_owned(),
        };
        request.command.args_iter().map(word).collect()
    }

    #[test]
    fn an_entry_has_all_that_an_item_has() {
        let own = Headers::from_iter([("content-type", "text/plain"), ("X-Type", "x")]);
        let published_at = Some(UNIX_EPOCH + Duration::from_millis(7_900));
        let item = Item {
            topic: "orders",
            key: Some("k"),
            headers: &own,
            published_at,
            ..Item::record("m1", "{}")
        };
        let expected = "XADD|a-orders|MAXLEN|~|9|*|id|m1|topic|orders|key|k|published_at|7900|\
                        headers|{\"X-Type\":\"x\",\"content-type\":\"text/plain\"}|payload|{}";
        assert_eq!(words("stream = 'a-{topic}'\nmaxlen = 9", &item).join("|"), expected);
        let item = Item { topic: "t", ..Item::record("1", "{}") };
        let expected = "XADD|t|*|id|1|topic|t|headers|{}|payload|{}";
        assert_eq!(words("", &item).join("|"), expected);
    }

    #[test]
    fn what_redis_would_hang_up_on_is_not_sent() {
        let config = toml::from_str("url = 'redis://h'").unwrap();
        let item = Item { topic: "t", ..Item::record("1", "0123456789") };
        let form = Form::new(&config).unwrap();
        assert!(form.request(&item, 10).is_ok());
        let error = form.request(&item, 9).err().unwrap();
        assert_eq!(error, "it is larger than Redis takes (proto-max-bulk-len 9)");
    }
}
