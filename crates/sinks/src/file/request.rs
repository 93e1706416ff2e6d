//! Items → lines, by file.

use super::config::Config;
use crate::{ConfigError, line, pattern::Pattern, record::percent_encoded};
use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};
use tidegate_core::sink::Item;

/// How lines are made.
#[derive(Clone, Debug)]
pub struct Form {
    pub pattern: Pattern,
}

/// Lines for one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lines {
    pub path: PathBuf,
    pub bytes: Vec<u8>,
}

impl Form {
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        Ok(Self { pattern: config.pattern()? })
    }

    /// Where the files are. No place is in it.
    pub fn directory(&self) -> PathBuf {
        let mut path = PathBuf::from(format!("{}x", self.pattern.literals().concat()));
        path.pop();
        if path.as_os_str().is_empty() { PathBuf::from(".") } else { path }
    }

    /// The file, if all items go to the same one.
    pub fn only_file(&self) -> Option<&Path> {
        let literal = self.pattern.literals().first().map(Path::new);
        literal.filter(|_| !self.pattern.depends_on_topic())
    }

    /// The lines of all items, or what is wrong with one of them. Usually they are for one file;
    /// those for several are in the order of the items, so that no key gets out of order.
    pub fn lines(&self, items: &[Item<'_>]) -> Result<Vec<Lines>, String> {
        let mut all: Vec<Lines> = Vec::new();
        for item in items {
            let path = PathBuf::from(self.pattern.fill(item, file_name)?);
            let lines = match all.last_mut() {
                Some(lines) if lines.path == path => lines,
                _ => {
                    all.push(Lines { path, bytes: Vec::new() });
                    all.last_mut().ok_or("there is nothing to write")?
                }
            };
            line::push(&mut lines.bytes, item)?;
        }
        Ok(all)
    }
}

/// A topic as part of a file's name: what means something there, or is hidden, is encoded as in an
/// address. So two topics never share a file.
fn file_name(topic: &str) -> Cow<'_, str> {
    let encoded = percent_encoded(topic).replace('~', "%7E");
    Cow::Owned(match encoded.strip_prefix('.') {
        Some(rest) => format!("%2E{rest}"),
        None => encoded,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(pattern: &str, topic: &str) -> Result<String, String> {
        let config: Config = toml::from_str(&format!("path = '{pattern}'")).unwrap();
        let items = [Item { topic, ..Item::record("1", "{}") }];
        let lines = Form::new(&config).unwrap().lines(&items)?;
        Ok(lines[0].path.to_str().unwrap().to_owned())
    }

    #[test]
    fn no_topic_leaves_its_directory() {
        let cases = [
            ("orders.v1-new_", "out/orders.v1-new_"),
            ("../../etc/passwd", "out/%2E.%2F..%2Fetc%2Fpasswd"),
            ("..", "out/%2E."),
            (".", "out/%2E"),
            (".bashrc", "out/%2Ebashrc"),
            ("/etc/passwd", "out/%2Fetc%2Fpasswd"),
            ("a\\b:c", "out/a%5Cb%3Ac"),
            ("a\0\n", "out/a%00%0A"),
            ("Köln", "out/K%C3%B6ln"),
            ("a%2Fb", "out/a%252Fb"),
        ];
        for (topic, expected) in cases {
            assert_eq!(path("out/{topic}", topic).as_deref(), Ok(expected));
        }
        assert!(path("out/{topic}", "").unwrap_err().contains("no topic"));
        assert_eq!(path("out/all", "").as_deref(), Ok("out/all"));
    }

    #[test]
    fn files_have_one_directory() {
        let of = |path: &str| {
            let config: Config = toml::from_str(&format!("path = '{path}'")).unwrap();
            Form::new(&config).unwrap().directory().to_str().unwrap().to_owned()
        };
        assert_eq!(of("/var/out/a-{topic}.ndjson"), "/var/out");
        assert_eq!(of("/var/out/all"), "/var/out");
        assert_eq!(of("{topic}"), ".");
        assert_eq!(of("/all"), "/");
    }

    #[test]
    fn files_are_written_in_the_order_of_the_items() {
        let config: Config = toml::from_str("path = '{topic}'").unwrap();
        let items = ["a", "a", "b", "a"].map(|topic| Item { topic, ..Item::record("1", "{}") });
        let lines = Form::new(&config).unwrap().lines(&items).unwrap();
        let paths: Vec<_> = lines.iter().map(|lines| lines.path.to_str().unwrap()).collect();
        assert_eq!(paths, ["a", "b", "a"]);
    }
}
