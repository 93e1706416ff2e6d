//! Qdrant, by its REST API: each item writes a point, or deletes one.
//!
//! Done means that Qdrant has applied the write: every request waits for that. Points have names
//! that follow from the items, so that a write that comes again changes nothing. The writes to one
//! point are applied in their order, because a batch is.

mod answer;
mod config;
mod id;
mod plan;
mod request;

pub use config::{Config, Create, Distance};

use crate::{
    ConfigError, Env,
    client::{Client, Reply, Settings},
    failure::Failure,
    hints::hint,
    pattern::Place,
    reason,
    retry_after::retry_after,
    status::{all, common},
};
use answer::{Asked, is_missing, judge};
use async_trait::async_trait;
use plan::{Plan, Wave};
use request::{Batch, Form};
use reqwest::{
    Method, RequestBuilder,
    header::{CONTENT_TYPE, HeaderValue},
};
use serde_json::json;
use std::time::{Duration, SystemTime};
use tidegate_core::sink::{
    Answer, Delivery, Hint, Item, Outcome, Sink, SinkCapabilities, SinkError, Verdict,
};
use tokio::time::timeout;

/// Delivers to the collections of a Qdrant.
#[derive(Debug)]
pub struct Qdrant {
    client: Client,
    form: Form,
    api_key: Option<HeaderValue>,
    create: Option<Create>,
    capabilities: SinkCapabilities,
}

impl Qdrant {
    /// A sink as declared. `env` looks up the variables that hold secrets. Nothing is sent.
    pub fn new(config: &Config, env: &Env<'_>) -> Result<Self, ConfigError> {
        let form = Form::new(config)?;
        let capabilities = SinkCapabilities {
            name: "qdrant",
            connections: vec!["main".to_owned()],
            operation: "write".to_owned(),
            max_group: config.max_group()?,
            // Where collections differ, one that is slow or fails should not hold up those of other topics.
            mixes_topics: !form.collection.places().iter().any(names_collections),
            budgets: Vec::new(),
        };
        let client = Client::new(Settings {
            secure: form.base().scheme() == "https",
            timeout: config.timeout()?,
            ca_file: config.ca_file.as_deref(),
            allow: &config.allow,
        })?;
        let api_key = config.api_key(env)?;
        match api_key {
            Some(_) => client.judge_secure("url", form.base())?,
            None => client.judge("url", form.base())?,
        }
        Ok(Self { client, form, api_key, create: config.create, capabilities })
    }

    async fn send(&self, request: RequestBuilder) -> Result<Reply, Failure> {
        let request = match &self.api_key {
            Some(key) => request.header("api-key", key),
            None => request,
        };
        self.client.send(request).await
    }

    async fn send_batch(&self, collection: &str, batch: &Batch) -> Result<Reply, Failure> {
        let url = self.form.batch_at(collection);
        let request = self.client.request(Method::POST, url);
        self.send(request.header(CONTENT_TYPE, "application/json").body(batch.body.clone())).await
    }

    /// One request per collection; usually that is one.
    async fn write_all(&self, items: &[Item<'_>]) -> Result<Answer, Failure> {
        let mut plan = Plan::new(&self.form, items);
        let mut told = Hint::default();
        while let Some(wave) = plan.next() {
            let batch = plan.batch(&wave);
            let Answer { outcome, hint } = self.write(&wave, &batch).await?;
            told = hint;
            match outcome {
                Outcome::Answered(verdicts) => plan.settle(wave, verdicts),
                // What was written before can be written again.
                outcome => return Ok(Answer { outcome, hint }),
            }
        }
        Ok(Answer { outcome: Outcome::Answered(plan.verdicts()), hint: told })
    }

    async fn write(&self, wave: &Wave, batch: &Batch) -> Result<Answer, Failure> {
        let collection = wave.collection.as_str();
        let (items, operations) = (wave.items.len(), batch.operations);
        let asked = Asked { collection, items, operations };
        let mut reply = self.send_batch(collection, batch).await?;
        if let Some(create) = self.create.filter(|_| is_missing(&reply)) {
            let made = self.create(collection, create).await?;
            if let Some(outcome) = common(&made, "main", SystemTime::now()) {
                return Ok(Answer { outcome, hint: hint(&made.headers) });
            }
            // Whatever came back: if another made it at the same time, it is there now.
            reply = self.send_batch(collection, batch).await?;
            if is_missing(&reply) {
                let problem = format!("it cannot be created: {}", answer::reason(&made));
                let problem =
                    format!("collection `{}` is missing: {problem}", reason::clean(collection));
                let outcome = all(items, Verdict::Retry(problem));
                return Ok(Answer { outcome, hint: hint(&made.headers) });
            }
        }
        let outcome = judge(&reply, asked, SystemTime::now());
        Ok(Answer { outcome, hint: hint(&reply.headers) })
    }

    async fn create(&self, collection: &str, create: Create) -> Result<Reply, Failure> {
        let vectors = json!({ "size": create.size, "distance": create.distance });
        let body = json!({ "vectors": vectors }).to_string();
        let request = self.client.request(Method::PUT, self.form.at(&[collection]));
        self.send(request.header(CONTENT_TYPE, "application/json").body(body)).await
    }
}

/// Whether collections mostly differ from topic to topic.
fn names_collections(place: &Place) -> bool {
    matches!(place, Place::Topic | Place::Header(_))
}

#[async_trait]
impl Sink for Qdrant {
    fn capabilities(&self) -> SinkCapabilities {
        self.capabilities.clone()
    }

    async fn check(&self) -> Result<Vec<Option<Duration>>, SinkError> {
        let reply = self.send(self.client.request(Method::GET, self.form.at(&[]))).await?;
        let reason = || reason::of(reply.status, &reply.body);
        match reply.status {
            200..=299 => Ok(vec![None]),
            // It is there, only busy.
            429 | 503 => Ok(vec![retry_after(&reply.headers, SystemTime::now())]),
            401 | 403 => Err(SinkError(format!("`api_key` is refused: {}", reason()))),
            _ => Err(SinkError(format!("there is no Qdrant at this address: {}", reason()))),
        }
    }

    async fn deliver(&self, delivery: Delivery<'_>) -> Answer {
        if delivery.connection != 0 {
            let problem = format!("there is no connection {}", delivery.connection);
            return Failure::Broken(problem).into();
        }
        // A request has this time for itself; several share it.
        match timeout(self.client.timeout(), self.write_all(delivery.items)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(failure)) => failure.into(),
            Err(_) => Failure::TimedOut.into(),
        }
    }

    /// A collection may be busy, locked or missing while others are not.
    fn destination(&self, item: &Item<'_>) -> Option<String> {
        self.form.collection.destination(item)
    }
}
