//! Any service that takes JSON or messages over HTTP.
//!
//! Done means a 2xx, or a 2xx of its own for the item. A service can recognize items that come
//! again by a header (`id_header`, one request per item) or by a field (`id_field`).
//!
//! A service may take the second item of a request and refuse the first. So a request carries one item
//! of each key that orders items; what follows in a key goes into a later request.

mod answer;
mod cloudevents;
mod config;
mod message;
mod request;
mod signing;
mod template;

pub use config::{Basic, Body, Config, Connection, HeaderText, Method};

use crate::{
    ConfigError, Env,
    client::{Client, Settings},
    failure::Failure,
    hints::hint,
    reason,
    retry_after::retry_after,
    rounds::{first, spread},
};
use answer::{Asked, judge};
use async_trait::async_trait;
use config::Credential;
use request::{Form, Parts};
use reqwest::{
    RequestBuilder,
    header::{ACCEPT, HeaderMap},
};
use signing::Signer;
use std::time::{Duration, SystemTime};
use tidegate_core::sink::{
    Answer, Delivery, Hint, Item, Outcome, Sink, SinkCapabilities, SinkError,
};

/// Delivers to a service that takes JSON or messages over HTTP.
#[derive(Debug)]
pub struct Http {
    client: Client,
    form: Form,
    headers: HeaderMap,
    signer: Option<Signer>,
    connections: Vec<(String, Credential)>,
    check: Option<String>,
    capabilities: SinkCapabilities,
}

impl Http {
    /// A sink as declared. `env` looks up the variables that hold secrets. Nothing is sent.
    pub fn new(config: &Config, env: &Env<'_>) -> Result<Self, ConfigError> {
        let form = Form::new(config)?;
        let connections = config.connections(env)?;
        let capabilities = SinkCapabilities {
            name: "http",
            connections: connections.iter().map(|(name, _)| name.clone()).collect(),
            operation: config.operation(),
            max_group: config.max_group()?,
            mixes_topics: true,
            budgets: Vec::new(),
        };
        if config.check.as_ref().is_some_and(|path| !path.starts_with('/')) {
            return Err(ConfigError::new("check", "is no path: begin it with `/`"));
        }
        let client = Client::new(Settings {
            secure: form.template.secure(),
            timeout: config.timeout()?,
            ca_file: config.ca_file.as_deref(),
            allow: &config.allow,
        })?;
        client.judge("url", &form.template.at("/"))?;
        let (headers, check) = (config.headers(env)?, config.check.clone());
        let signer = config.signer(env)?;
        Ok(Self { client, form, headers, signer, connections, check, capabilities })
    }

    /// What is sent for these items, signed if that is asked for.
    fn parts(&self, items: &[Item<'_>]) -> Result<Parts, String> {
        let mut parts = self.form.parts(items)?;
        if let (Some(signer), Some(first)) = (&self.signer, items.first()) {
            parts.headers.extend(signer.sign(first.id, SystemTime::now(), &parts.body)?);
        }
        Ok(parts)
    }

    fn request(&self, parts: Parts, credential: &Credential) -> RequestBuilder {
        let request = self.client.request(self.form.method.into(), parts.url);
        self.identify(request.headers(parts.headers), credential).body(parts.body)
    }

    /// Adds what is the same for all requests on a connection. Declared headers come last, so that
    /// they replace the sink's own.
    fn identify(&self, request: RequestBuilder, credential: &Credential) -> RequestBuilder {
        let request = request.header(ACCEPT, "application/json");
        let request = match credential {
            Credential::None => request,
            Credential::Bearer(token) => request.bearer_auth(token.reveal()),
            Credential::Basic(user, password) => request.basic_auth(user, Some(password.reveal())),
        };
        request.headers(self.headers.clone())
    }

    async fn check_connection(
        &self,
        name: &str,
        credential: &Credential,
    ) -> Result<Option<Duration>, SinkError> {
        // Without a path to ask, a HEAD of the root: it delivers nothing, and any answer to it
        // shows that the service is there.
        let (method, path) = match &self.check {
            Some(path) => (reqwest::Method::GET, path.as_str()),
            None => (reqwest::Method::HEAD, "/"),
        };
        let request = self.client.request(method, self.form.template.at(path));
        let reply = self.client.send(self.identify(request, credential)).await?;
        let reason = || reason::of(reply.status, &reply.body);
        let wait = retry_after(&reply.headers, SystemTime::now());
        match reply.status {
            401 | 403 => Err(SinkError(format!(
                "the credentials of connection `{name}` are refused: {}",
                reason()
            ))),
            // It is there, only busy.
            429 | 503 if wait.is_some() => Ok(wait),
            200..=299 | 429 => Ok(None),
            _ if self.check.is_none() => Ok(None),
            _ => Err(SinkError(format!("`check` at {path} failed: {}", reason()))),
        }
    }
}

#[async_trait]
impl Sink for Http {
    fn capabilities(&self) -> SinkCapabilities {
        self.capabilities.clone()
    }

    async fn check(&self) -> Result<Vec<Option<Duration>>, SinkError> {
        let mut waits = Vec::new();
        for (name, credential) in &self.connections {
            waits.push(self.check_connection(name, credential).await?);
        }
        Ok(waits)
    }

    async fn deliver(&self, delivery: Delivery<'_>) -> Answer {
        let Some((name, credential)) = self.connections.get(delivery.connection) else {
            return Failure::Broken(format!("there is no connection {}", delivery.connection))
                .into();
        };
        let sent = first(delivery.items);
        let items: Vec<Item<'_>> = sent.iter().map(|&at| delivery.items[at]).collect();
        let told =
            |outcome, hint| Answer { outcome: spread(outcome, &sent, delivery.items.len()), hint };
        let parts = match self.parts(&items) {
            Ok(parts) => parts,
            Err(reason) => return told(Outcome::Refused(reason), Hint::default()),
        };
        let asked = Asked {
            connection: name,
            items: items.len(),
            addressed: self.form.template.has_places(),
            message: self.form.body.is_message(),
            recognizable: self.form.id_header.is_some(),
        };
        match self.client.send(self.request(parts, credential)).await {
            Ok(reply) => told(judge(&reply, asked, SystemTime::now()), hint(&reply.headers)),
            Err(failure) => failure.into(),
        }
    }

    /// A service may have an answer for each item of a group.
    fn one_per_key(&self) -> bool {
        !self.form.body.is_single()
    }

    /// The host is the same for all, but each topic may have a path of its own.
    fn destination(&self, item: &Item<'_>) -> Option<String> {
        self.form.template.has_topic().then(|| item.topic.to_owned())
    }
}
