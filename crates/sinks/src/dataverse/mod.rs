//! Microsoft Dataverse, after its public documentation: bulk messages, and `$batch` where there is
//! none.
//!
//! Done means that Dataverse says so of the record: of all records of a request to a standard
//! table, which is a transaction; of each record of an elastic table or of a `$batch`. No request holds
//! the same record twice, nor two records of which the second may be stored without the first although
//! its key says that it must follow.

mod answer;
mod batch;
mod config;
mod key;
mod request;
mod token;

pub use config::{Config, Key, Operation, User};

use crate::{
    ConfigError, Env,
    client::{Client, Reply, Settings},
    failure::Failure,
    hints::hint,
    reason,
    retry_after::retry_after,
    rounds::spread,
};
use answer::{Asked, judge};
use async_trait::async_trait;
use request::{Form, Parts};
use reqwest::{
    Method, RequestBuilder,
    header::{ACCEPT, CONTENT_TYPE},
};
use std::time::{Duration, SystemTime};
use tidegate_core::sink::{
    Answer, Budget, BudgetKind, Delivery, Hint, Item, Outcome, Sink, SinkCapabilities, SinkError,
};
use token::Tokens;

/// The service protection limits that Dataverse documents, per user and web server. How many web
/// servers there are is not known: one is certain.
pub fn budgets() -> Vec<Budget> {
    let window = Duration::from_secs(300);
    vec![
        Budget { kind: BudgetKind::Requests, limit: 6000, window },
        Budget { kind: BudgetKind::ExecutionSeconds, limit: 1200, window },
        Budget { kind: BudgetKind::Concurrent, limit: 52, window: Duration::ZERO },
    ]
}

/// Delivers to one table of a Dataverse environment.
#[derive(Debug)]
pub struct Dataverse {
    client: Client,
    form: Form,
    users: Vec<Tokens>,
    capabilities: SinkCapabilities,
}

impl Dataverse {
    /// A sink as declared. `env` looks up the variables that hold secrets. Nothing is sent.
    pub fn new(config: &Config, env: &Env<'_>) -> Result<Self, ConfigError> {
        config.check()?;
        let (url, token_url) = (config.url()?, config.token_url()?);
        let capabilities = SinkCapabilities {
            name: "dataverse",
            connections: config.users.iter().map(|user| user.name.clone()).collect(),
            operation: config.operation.name().to_owned(),
            max_group: config.max_group()?,
            mixes_topics: true,
            budgets: budgets(),
        };
        let client = Client::new(Settings {
            secure: url.scheme() == "https" || token_url.scheme() == "https",
            timeout: config.timeout()?,
            ca_file: config.ca_file.as_deref(),
            allow: &config.allow,
        })?;
        client.judge_secure("url", &url)?;
        client.judge_secure("token_url", &token_url)?;
        let users = config.users.iter().map(|user| Tokens::new(user, token_url.clone(), &url, env));
        let users = users.collect::<Result<_, _>>()?;
        Ok(Self { client, form: Form::new(config)?, users, capabilities })
    }

    /// Sends a request with the user's token, once.
    async fn send(&self, user: &Tokens, request: RequestBuilder) -> Result<Reply, Failure> {
        let token = user.get(&self.client).await?;
        let request = request
            .bearer_auth(token.value.reveal())
            .header(ACCEPT, "application/json")
            .header("odata-maxversion", "4.0")
            .header("odata-version", "4.0");
        let reply = self.client.send(request).await?;
        if reply.status == 401 {
            return Err(user.refused(&token, &reply));
        }
        token.accept();
        Ok(reply)
    }

    fn request(&self, parts: Parts) -> RequestBuilder {
        self.client
            .request(Method::POST, parts.url)
            .header(CONTENT_TYPE, parts.content_type)
            .header("prefer", parts.prefer)
            .body(parts.body)
    }

    async fn check_user(&self, user: &Tokens) -> Result<Option<Duration>, SinkError> {
        let request = self.client.request(Method::GET, self.form.at("WhoAmI"));
        let reply = self.send(user, request).await?;
        match reply.status {
            // It is there, only busy.
            429 => Ok(retry_after(&reply.headers, SystemTime::now())),
            200..=299 => Ok(None),
            status => {
                let reason = reason::of(status, &reply.body);
                Err(SinkError(format!("user `{}` cannot use Dataverse: {reason}", user.user)))
            }
        }
    }
}

#[async_trait]
impl Sink for Dataverse {
    fn capabilities(&self) -> SinkCapabilities {
        self.capabilities.clone()
    }

    async fn check(&self) -> Result<Vec<Option<Duration>>, SinkError> {
        let mut waits = Vec::new();
        for user in &self.users {
            waits.push(self.check_user(user).await?);
        }
        Ok(waits)
    }

    async fn deliver(&self, delivery: Delivery<'_>) -> Answer {
        let Some(user) = self.users.get(delivery.connection) else {
            return Failure::Broken(format!("there is no connection {}", delivery.connection))
                .into();
        };
        let sent = self.form.first(delivery.items);
        let items: Vec<Item<'_>> = sent.iter().map(|&at| delivery.items[at]).collect();
        let told =
            |outcome, hint| Answer { outcome: spread(outcome, &sent, delivery.items.len()), hint };
        let parts = match self.form.parts(&items) {
            Ok(parts) => parts,
            Err(reason) => return told(Outcome::Refused(reason), Hint::default()),
        };
        let asked = Asked { user: &user.user, items: items.len(), message: self.form.message };
        match self.send(user, self.request(parts)).await {
            Ok(reply) => told(judge(&reply, asked, SystemTime::now()), hint(&reply.headers)),
            Err(failure) => failure.into(),
        }
    }

    fn one_per_key(&self) -> bool {
        self.form.one_per_key()
    }
}
