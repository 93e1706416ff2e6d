//! Items → the request's address, headers and body.

use super::{
    cloudevents,
    config::{Body, Config, Method},
    message,
    template::{Scope, Template},
};
use crate::{
    ConfigError,
    record::{Record, quoted},
};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use std::borrow::Cow;
use tidegate_core::sink::Item;
use url::Url;

/// How requests are made.
#[derive(Clone, Debug)]
pub struct Form {
    pub template: Template,
    pub method: Method,
    pub body: Body,
    pub id_header: Option<HeaderName>,
    pub id_field: Option<String>,
    /// Where CloudEvents come from.
    source: String,
}

/// What is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Form {
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        let scope = if config.body.is_message() { Scope::Message } else { Scope::Record };
        let template = Template::parse(&config.url, scope)?;
        let refused = |key: &str, problem: &str| Err(ConfigError::new(key, problem));
        if template.has_places() && !config.body.is_single() {
            let problem = "has a `{…}`, but a request carries many records: use `body` = \"item\"";
            return refused("url", problem);
        }
        if config.method == Method::Delete && config.body.is_message() {
            return refused("method", "is DELETE, which carries no message: use POST or PUT");
        }
        if config.method == Method::Delete && config.body == Body::Item && !template.has_places() {
            return refused("url", "does not say what to delete: put `{id}` or a field into it");
        }
        if config.id_field.as_deref() == Some("") {
            return refused("id_field", "is empty: name a field, or remove it");
        }
        if config.id_field.is_some() && config.body.is_message() {
            return refused("id_field", "would change a message: remove it, or use `id_header`");
        }
        Ok(Self {
            source: config.source()?,
            template,
            method: config.method,
            body: config.body,
            id_header: config.id_header()?,
            id_field: config.id_field.clone(),
        })
    }

    /// The request for these items, or what is wrong with one of them.
    pub fn parts(&self, items: &[Item<'_>]) -> Result<Parts, String> {
        let first = items.first().ok_or("there is nothing to send")?;
        let (mut headers, body) = match self.body {
            Body::Item => self.records(items, "application/json", ["", "", ""])?,
            Body::Ndjson => self.records(items, "application/x-ndjson", ["", "\n", "\n"])?,
            Body::Array => self.records(items, "application/json", ["[", ",", "]"])?,
            Body::Message => (message::plain(first), first.payload.to_vec()),
            Body::CloudEvents => cloudevents::structured(first, &self.source)?,
            Body::CloudEventsBinary => cloudevents::binary(first, &self.source)?,
        };
        if let Some(name) = &self.id_header {
            let id = HeaderValue::from_str(first.id);
            let id = id.map_err(|_| "the item's id cannot be sent in a header".to_owned())?;
            headers.insert(name, id);
        }
        Ok(Parts { url: self.template.fill(first)?, headers, body })
    }

    fn records(
        &self,
        items: &[Item<'_>],
        media_type: &'static str,
        [before, between, after]: [&str; 3],
    ) -> Result<(HeaderMap, Vec<u8>), String> {
        let mut headers = HeaderMap::new();
        if self.body == Body::Item && self.method == Method::Delete {
            return Ok((headers, Vec::new()));
        }
        let length: usize = items.iter().map(|item| item.payload.len() + 1).sum();
        let mut body = String::with_capacity(length + 2);
        body.push_str(before);
        for (index, item) in items.iter().enumerate() {
            body.push_str(if index == 0 { "" } else { between });
            body.push_str(&self.record(item)?);
        }
        body.push_str(after);
        if !body.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        }
        Ok((headers, body.into_bytes()))
    }

    /// The record with its id in it, and on one line if lines count.
    fn record<'a>(&self, item: &Item<'a>) -> Result<Cow<'a, str>, String> {
        let record = match &self.id_field {
            Some(field) => with_id(field, item)?,
            None => Cow::Borrowed(item.text()?),
        };
        if self.body == Body::Ndjson && record.contains(['\n', '\r']) {
            // In JSON, line breaks stand between tokens only.
            return Ok(Cow::Owned(record.replace(['\n', '\r'], " ")));
        }
        Ok(record)
    }
}

fn with_id<'a>(field: &str, item: &Item<'a>) -> Result<Cow<'a, str>, String> {
    let text = item.text()?;
    let record = Record::read(text)?;
    if record.has(field) {
        return Ok(Cow::Borrowed(text));
    }
    let mut with_id = String::with_capacity(text.len() + field.len() + item.id.len() + 8);
    record.write(&mut with_id, &[(field, &quoted(item.id))], |_| true);
    Ok(Cow::Owned(with_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ITEMS: [Item<'static>; 2] =
        [Item::record("1", "{\"a\":\n1}"), Item::record("2", r#"{"key":"own"}"#)];

    fn form(config: &str) -> Result<Form, String> {
        let config: Config = toml::from_str(&format!("url = 'https://h/x'\n{config}")).unwrap();
        Form::new(&config).map_err(|error| error.to_string())
    }

    fn body(config: &str) -> String {
        String::from_utf8(form(config).unwrap().parts(&ITEMS).unwrap().body).unwrap()
    }

    #[test]
    fn records_are_sent_in_the_declared_form() {
        assert_eq!(body("body = 'ndjson'"), "{\"a\": 1}\n{\"key\":\"own\"}\n");
        assert_eq!(body("body = 'array'"), "[{\"a\":\n1},{\"key\":\"own\"}]");
        let one = form("").unwrap().parts(&ITEMS[..1]).unwrap();
        assert_eq!(one.body, ITEMS[0].payload);
        assert_eq!(one.headers["idempotency-key"], "1");
        assert_eq!(one.headers["content-type"], "application/json");
        let none = form("id_header = ''").unwrap().parts(&ITEMS[..1]).unwrap();
        assert!(!none.headers.contains_key("idempotency-key"));
    }

    #[test]
    fn the_id_is_put_into_records_that_have_none() {
        let sent = body("body = 'array'\nid_field = 'key'");
        assert_eq!(sent, r#"[{"key":"1","a":1},{"key":"own"}]"#);
    }

    #[test]
    fn a_bad_item_is_found_before_anything_is_sent() {
        let bad = [Item::record("1\n", "{}")];
        let error = form("").unwrap().parts(&bad).unwrap_err();
        assert_eq!(error, "the item's id cannot be sent in a header");
        let bad = [ITEMS[0], Item::record("2", "7")];
        let error = form("body = 'array'\nid_field = 'key'").unwrap().parts(&bad).unwrap_err();
        assert!(error.contains("no JSON object"), "{error}");
    }

    #[test]
    fn forms_that_cannot_be_are_refused() {
        let url = |url: &str, rest: &str| {
            let config: Config = toml::from_str(&format!("url = '{url}'\n{rest}")).unwrap();
            Form::new(&config).unwrap_err().to_string()
        };
        assert!(url("https://h/{a}", "body = 'array'").contains("use `body` = \"item\""));
        assert!(url("https://h/x", "method = 'DELETE'").contains("put `{id}`"));
        assert!(form("body = 'array'\nid_header = 'x'").unwrap_err().contains("`id_field`"));
        assert!(form("id_header = 'content-length'").unwrap_err().contains("remove it"));
        let message = |rest: &str| form(&format!("body = 'message'\n{rest}")).unwrap_err();
        assert!(message("method = 'DELETE'").contains("use POST or PUT"));
        assert!(message("id_field = 'x'").contains("would change a message"));
        assert!(message("source = 'x'").contains("of CloudEvents only"));
        assert!(form("body = 'cloudevents'\nsource = ''").unwrap_err().contains("URI reference"));
    }
}
