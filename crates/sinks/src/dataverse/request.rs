//! Items → a bulk message or a `$batch`.
//!
//! `DeleteMultiple` exists for elastic tables only; records of standard tables are deleted one by
//! one in a `$batch`, which costs one request as well.

use super::{
    batch,
    config::{Config, Key, Operation},
    key::{guid, reference},
};
use crate::{
    ConfigError,
    record::{Record, quoted},
};
use std::collections::HashSet;
use tidegate_core::sink::Item;
use url::Url;

/// Where the Web API begins.
const ROOT: &str = "/api/data/v9.2/";

/// Where a record of an elastic table is, beside its primary key.
const PARTITION: &str = "partitionid";

/// How requests are made.
#[derive(Clone, Debug)]
pub struct Form {
    pub message: Message,
    base: Url,
    table: String,
    /// The quoted type of the records.
    kind: String,
    key: Option<Key>,
    /// Whether each record has an answer of its own.
    answers_each: bool,
}

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// `CreateMultiple`, `UpdateMultiple`, `UpsertMultiple`.
    Write(&'static str),
    /// `DeleteMultiple`.
    DeleteMultiple,
    /// `DELETE` of each in a `$batch`.
    DeleteEach,
}

/// What is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    pub url: Url,
    pub content_type: &'static str,
    pub prefer: &'static str,
    pub body: String,
}

impl Form {
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        let message = match config.operation {
            Operation::Create => Message::Write("CreateMultiple"),
            Operation::Update => Message::Write("UpdateMultiple"),
            Operation::Upsert => Message::Write("UpsertMultiple"),
            Operation::Delete if config.elastic => Message::DeleteMultiple,
            Operation::Delete => Message::DeleteEach,
        };
        Ok(Self {
            message,
            base: config.url()?,
            table: config.table.clone(),
            kind: quoted(&format!("Microsoft.Dynamics.CRM.{}", config.entity)),
            key: config.key.clone(),
            answers_each: config.elastic || message == Message::DeleteEach,
        })
    }

    /// Whether two items of a key can rarely be in one request: they fail apart, or are about one record.
    pub fn one_per_key(&self) -> bool {
        self.answers_each || self.key.is_some()
    }

    /// The places of items that can be sent in one request. None is sent with one before it that it must
    /// follow: if records fail apart, one of the same key. No two are about the same record: of such,
    /// UpdateMultiple carries out the first and ignores the others without a word, and UpsertMultiple
    /// fails as a whole.
    pub fn first(&self, items: &[Item<'_>]) -> Vec<usize> {
        let (mut taken, mut keys, mut held) = (Vec::new(), HashSet::new(), HashSet::new());
        let mut records = HashSet::new();
        for (at, item) in items.iter().enumerate() {
            let waits = item
                .order()
                .is_some_and(|key| held.contains(key) || self.answers_each && keys.contains(key));
            if waits || self.record_of(item).is_some_and(|record| !records.insert(record)) {
                held.extend(item.order());
            } else {
                keys.extend(item.order());
                taken.push(at);
            }
        }
        taken
    }

    /// The record that an item is about. Dataverse compares text without regard to case.
    fn record_of(&self, item: &Item<'_>) -> Option<String> {
        let record = Record::read(item.text().ok()?).ok()?;
        let name = match self.key.as_ref()? {
            Key::Primary(name) => guid(name, &record).ok()?.as_str().to_owned(),
            Key::Alternate(names) => reference(&self.table, names, &record).ok()?,
        };
        Some(name.to_lowercase())
    }

    /// An address of the Web API.
    pub fn at(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{ROOT}{path}"));
        url
    }

    /// The request for these items, or what is wrong with one of them.
    pub fn parts(&self, items: &[Item<'_>]) -> Result<Parts, String> {
        match self.message {
            Message::Write(name) => self.bulk(name, items, Self::target),
            Message::DeleteMultiple => self.bulk("DeleteMultiple", items, Self::deleted),
            Message::DeleteEach => self.batch(items),
        }
    }

    fn bulk(
        &self,
        message: &str,
        items: &[Item<'_>],
        target: impl Fn(&Self, &mut String, &Record<'_>) -> Result<(), String>,
    ) -> Result<Parts, String> {
        let mut body = "{\"Targets\":[".to_owned();
        for (index, item) in items.iter().enumerate() {
            body.push_str(if index == 0 { "" } else { "," });
            target(self, &mut body, &Record::read(item.text()?)?)?;
        }
        body.push_str("]}");
        Ok(Parts {
            url: self.at(&format!("{}/Microsoft.Dynamics.CRM.{message}", self.table)),
            content_type: "application/json; charset=utf-8",
            // Without it, an elastic table does not tell which records failed.
            prefer: "odata.include-annotations=\"*\"",
            body,
        })
    }

    /// A record to write. Annotations of its own are left out: they could name another table.
    fn target(&self, out: &mut String, record: &Record<'_>) -> Result<(), String> {
        let own = |name: &str| !name.starts_with("@odata.");
        match &self.key {
            Some(Key::Alternate(names)) => {
                let id = quoted(&reference(&self.table, names, record)?);
                let added = [("@odata.type", self.kind.as_str()), ("@odata.id", &id)];
                // Dataverse takes the key's values from the reference.
                record.write(out, &added, |name| own(name) && !names.iter().any(|it| it == name));
            }
            Some(Key::Primary(name)) => {
                guid(name, record)?;
                record.write(out, &[("@odata.type", &self.kind)], own);
            }
            None => record.write(out, &[("@odata.type", &self.kind)], own),
        }
        Ok(())
    }

    /// A record to delete: nothing but what identifies it.
    fn deleted(&self, out: &mut String, record: &Record<'_>) -> Result<(), String> {
        let name = self.primary()?;
        guid(name, record)?;
        record.write(out, &[("@odata.type", &self.kind)], |it| it == name || it == PARTITION);
        Ok(())
    }

    fn batch(&self, items: &[Item<'_>]) -> Result<Parts, String> {
        let mut body = String::new();
        for item in items {
            let record = Record::read(item.text()?)?;
            let target = match &self.key {
                Some(Key::Alternate(names)) => reference(&self.table, names, &record)?,
                _ => format!("{}({})", self.table, guid(self.primary()?, &record)?.as_str()),
            };
            batch::push(&mut body, "DELETE", &format!("{ROOT}{target}"));
        }
        batch::finish(&mut body);
        Ok(Parts {
            url: self.at("$batch"),
            content_type: batch::CONTENT_TYPE,
            prefer: "odata.continue-on-error",
            body,
        })
    }

    fn primary(&self) -> Result<&str, String> {
        match &self.key {
            Some(Key::Primary(name)) => Ok(name),
            // The config was checked.
            _ => Err("the sink has no primary key".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "00000000-0000-0000-0000-00000000000a";

    fn parts(rest: &str, payload: &str) -> Result<Parts, String> {
        let base = "url = 'https://org.crm.dynamics.com'\ntable = 'accounts'\nentity = 'account'\n\
                    tenant = 't'\nusers = []\n";
        let config: Config = toml::from_str(&format!("{base}{rest}")).unwrap();
        Form::new(&config).unwrap().parts(&[Item::record("1", payload)])
    }

    #[test]
    fn records_are_written_with_their_type_and_key() {
        let created = parts("operation = 'create'", r#"{"name":"a","@odata.type":"x"}"#).unwrap();
        let path = "/api/data/v9.2/accounts/Microsoft.Dynamics.CRM.CreateMultiple";
        assert_eq!(created.url.as_str(), format!("https://org.crm.dynamics.com{path}"));
        let body = r#"{"Targets":[{"@odata.type":"Microsoft.Dynamics.CRM.account","name":"a"}]}"#;
        assert_eq!(created.body, body);

        let payload = r#"{"city":"Köln","no":7,"name":"it's"}"#;
        let upserted = parts("operation = 'upsert'\nkey = ['name', 'no']", payload).unwrap();
        assert!(upserted.url.as_str().ends_with("UpsertMultiple"));
        let reference = r#""@odata.id":"accounts(name='it%27%27s',no=7)","city":"Köln"}"#;
        assert!(upserted.body.contains(reference), "{}", upserted.body);

        let payload = format!(r#"{{"accountid":"{ID}","name":"b"}}"#);
        let updated = parts("operation = 'update'\nkey = 'accountid'", &payload).unwrap();
        assert!(updated.body.contains(&payload[1..]), "{}", updated.body);
        assert!(updated.url.as_str().ends_with("UpdateMultiple"));
    }

    #[test]
    fn records_are_deleted_by_what_identifies_them() {
        let payload = format!(r#"{{"accountid":"{ID}","name":"b","partitionid":"p"}}"#);
        let elastic = "operation = 'delete'\nkey = 'accountid'\nelastic = true";
        let bulk = parts(elastic, &payload).unwrap();
        assert!(bulk.url.as_str().ends_with("DeleteMultiple"));
        let target = format!(r#""accountid":"{ID}","partitionid":"p"}}]}}"#);
        assert!(bulk.body.ends_with(&target), "{}", bulk.body);

        let batch = parts("operation = 'delete'\nkey = 'accountid'", &payload).unwrap();
        assert!(batch.url.as_str().ends_with("/api/data/v9.2/$batch"));
        let line = format!("\r\n\r\nDELETE /api/data/v9.2/accounts({ID}) HTTP/1.1\r\n");
        assert!(batch.body.contains(&line), "{}", batch.body);
        assert_eq!(batch.prefer, "odata.continue-on-error");
    }

    #[test]
    fn no_request_holds_a_record_twice_or_what_must_follow_another() {
        let base = "url = 'https://org.crm.dynamics.com'\ntable = 'accounts'\nentity = 'account'\n\
                    tenant = 't'\nusers = []\n";
        let first = |rest: &str, items: &[(Option<&str>, &str)]| {
            let config: Config = toml::from_str(&format!("{base}{rest}")).unwrap();
            let item = |&(key, no): &(_, &str)| (key, format!(r#"{{"no":"{no}"}}"#));
            let items: Vec<_> = items.iter().map(item).collect();
            let item = |(key, payload)| Item { key, ..Item::record("1", payload) };
            let items: Vec<_> = items.iter().map(|(key, payload)| item((*key, payload))).collect();
            Form::new(&config).unwrap().first(&items)
        };
        let (a, b) = (Some("a"), Some("b"));
        let mixed = [(a, "1"), (a, "2"), (b, "A"), (b, "a"), (b, "3"), (None, "1"), (None, "4")];
        let upsert = "operation = 'upsert'\nkey = ['no']";
        assert_eq!(
            first(upsert, &mixed),
            [0, 1, 2, 6],
            "`A` and `a` are one record, and 3 follows it"
        );
        let elastic = format!("{upsert}\nelastic = true");
        assert_eq!(first(&elastic, &mixed), [0, 2, 6], "records fail apart");
        assert_eq!(first("operation = 'delete'\nkey = ['no']", &mixed), [0, 2, 6]);
        assert_eq!(first("operation = 'create'", &mixed), [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn a_record_without_its_key_is_at_fault() {
        let update = "operation = 'update'\nkey = 'accountid'";
        assert_eq!(parts(update, "{}").unwrap_err(), "field `accountid` is missing");
        let forged = r#"{"accountid":"1) HTTP/1.1\r\n\r\nDELETE x"}"#;
        for rest in [update, "operation = 'delete'\nkey = 'accountid'"] {
            assert_eq!(parts(rest, forged).unwrap_err(), "field `accountid` is no GUID");
        }
        let upsert = "operation = 'upsert'\nkey = ['a', 'b']";
        assert_eq!(parts(upsert, r#"{"a":1}"#).unwrap_err(), "field `b` is missing");
    }
}
