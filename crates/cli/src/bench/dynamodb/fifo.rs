//! From DynamoDB into a FIFO queue of SQS, while relays are killed.

use super::{
    kills::kill_until_done,
    sink::Seen,
    tables::{Bench, Tables},
};
use crate::bench::report::{Bound, Judge};
use anyhow::{Context, Result};
use aws_sdk_sqs::{
    Client,
    config::{BehaviorVersion, Credentials, Region},
    types::{
        DeleteMessageBatchRequestEntry, Message, MessageSystemAttributeName, QueueAttributeName,
    },
};
use serde_json::json;
use std::sync::Arc;
use tidegate::{
    Sink,
    dynamodb::Transport,
    sinks::sqs::{Config, Sqs},
};

/// Most that SQS gives out in one answer.
const MOST_RECEIVED: i32 = 10;

/// Emulators ask for a key and look at none.
const NO_KEY: &str = "bench";

/// Messages of each key, one after the other.
const PER_KEY: usize = 10;

/// Sends all messages to a queue by the sink `sqs`, and judges what a consumer of the queue gets.
pub async fn measure(
    tables: &Tables,
    endpoint: &str,
    messages: usize,
    judge: &mut Judge,
) -> Result<()> {
    let bench = tables.create("&min_age=0ms").await?;
    let ids = bench.publish(messages, messages.div_ceil(PER_KEY)).await?;
    let queue = Queue::create(&bench, endpoint).await?;
    let kills = kill_until_done(&bench, || queue.sink()).await?;
    let seen = queue.receive_all().await?;
    let (lost, unexpected) = seen.compared_with(&ids);
    judge.check("fifo: kills", Some(f64::from(kills)), Bound::AtLeast, 1.0);
    judge.check("fifo: lost", Some(lost as f64), Bound::AtMost, 0.0);
    judge.check("fifo: unexpected", Some(unexpected as f64), Bound::AtMost, 0.0);
    judge.check("fifo: out of order", Some(seen.out_of_order as f64), Bound::AtMost, 0.0);
    judge.check("fifo: duplicates", Some(seen.duplicates() as f64), Bound::AtMost, 0.0);
    queue.client.delete_queue().queue_url(&queue.url).send().await?;
    bench.drop().await
}

/// A FIFO queue of the bench's own.
struct Queue {
    client: Client,
    endpoint: String,
    region: String,
    url: String,
}

impl Queue {
    async fn create(bench: &Bench, endpoint: &str) -> Result<Self> {
        let transport = Transport::new().map_err(anyhow::Error::from_boxed)?;
        let config = aws_sdk_sqs::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(bench.region.clone()))
            .endpoint_url(endpoint)
            .credentials_provider(Credentials::new(NO_KEY, NO_KEY, None, None, NO_KEY))
            .http_client(transport)
            .build();
        let client = Client::from_conf(config);
        let created = client
            .create_queue()
            .queue_name(format!("{}.fifo", bench.name))
            .attributes(QueueAttributeName::FifoQueue, "true")
            .send()
            .await
            .with_context(|| format!("could not create a queue at {endpoint}"))?;
        let url = created.queue_url.context("the new queue has no URL")?;
        Ok(Self { client, endpoint: endpoint.to_owned(), region: bench.region.clone(), url })
    }

    /// A sink of its own for each relay, as each process has.
    fn sink(&self) -> Result<Arc<dyn Sink>> {
        let host = self.endpoint.trim_start_matches("http://").split([':', '/']).next();
        let declared = json!({
            "allow": [host],
            "queue": self.url,
            "region": self.region,
            "endpoint": self.endpoint,
            "access_key_id": NO_KEY,
            "secret_access_key": { "env": NO_KEY },
        });
        let config: Config = serde_json::from_value(declared)?;
        Ok(Arc::new(Sqs::new(&config, &|_| Some(NO_KEY.to_owned()))?))
    }

    /// Takes everything out of the queue, as a consumer does.
    async fn receive_all(&self) -> Result<Seen> {
        let mut seen = Seen::default();
        loop {
            let answer = self
                .client
                .receive_message()
                .queue_url(&self.url)
                .max_number_of_messages(MOST_RECEIVED)
                .message_system_attribute_names(MessageSystemAttributeName::All)
                .send()
                .await?;
            let messages = answer.messages.unwrap_or_default();
            if messages.is_empty() {
                return Ok(seen);
            }
            for message in &messages {
                let attribute = |name| attribute(message, name);
                let id = attribute(MessageSystemAttributeName::MessageDeduplicationId)?;
                let key = attribute(MessageSystemAttributeName::MessageGroupId)?;
                seen.take(id, key, message.body.as_deref().unwrap_or_default().as_bytes());
            }
            self.delete(&messages).await?;
        }
    }

    /// The next messages of a group are given out when those before them are deleted.
    async fn delete(&self, messages: &[Message]) -> Result<()> {
        let entry = |(at, message): (usize, &Message)| {
            DeleteMessageBatchRequestEntry::builder()
                .id(at.to_string())
                .set_receipt_handle(message.receipt_handle.clone())
                .build()
        };
        let entries = messages.iter().enumerate().map(entry).collect::<Result<_, _>>()?;
        let delete = self.client.delete_message_batch().queue_url(&self.url);
        delete.set_entries(Some(entries)).send().await?;
        Ok(())
    }
}

fn attribute(message: &Message, name: MessageSystemAttributeName) -> Result<&str> {
    let found = message.attributes.as_ref().and_then(|all| all.get(&name));
    found
        .map(String::as_str)
        .with_context(|| format!("a received message has no {}", name.as_str()))
}
