//! Publishing on a connection: all messages of a round are sent before the first is confirmed.

use super::{
    answer::{self, Fate},
    connection::Connection,
    known::Known,
    request::Request,
};
use crate::{broker::Reply, failure::Failure};
use lapin::{
    Channel, Error, PublisherConfirm,
    options::{BasicPublishOptions, QueueDeclareOptions},
    types::{AMQPValue, FieldTable, LongString, ShortString},
};
use std::sync::{MutexGuard, PoisonError};
use tidegate_core::sink::Item;
use tokio::time::{Instant, timeout_at};

/// A message that no queue takes comes back.
const MANDATORY: BasicPublishOptions = BasicPublishOptions { mandatory: true, immediate: false };

impl Connection {
    /// There is a durable quorum queue of this name when it returns `Ok`.
    pub async fn declare(&self, queue: &str, deadline: Instant) -> Result<(), Reply> {
        if self.declared().contains(queue) {
            return Ok(());
        }
        // On a channel of its own: a queue that is something else closes it.
        let declare = async {
            let channel = self.channel().await?;
            let options = QueueDeclareOptions { durable: true, ..Default::default() };
            channel.queue_declare(queue.into(), options, quorum()).await?;
            self.keep(channel);
            Ok(())
        };
        match timeout_at(deadline, declare).await {
            Ok(Ok(())) => {
                self.declared().insert(queue);
                Ok(())
            }
            Ok(Err(error)) => Err(answer::undeclared(&error, queue)),
            Err(_) => Err(Err(self.late())),
        }
    }

    /// Publishes on a channel of its own, and waits for what becomes of each message.
    pub async fn publish(
        &self,
        exchange: &str,
        items: &[Item<'_>],
        requests: Vec<Result<Request, Reply>>,
        deadline: Instant,
    ) -> Vec<Fate> {
        let channel = match timeout_at(deadline, self.channel()).await {
            Ok(Ok(channel)) => channel,
            Ok(Err(error)) => return unsent(requests, &answer::lost(&error)),
            Err(_) => return unsent(requests, &self.late()),
        };
        let mut sent = Vec::with_capacity(items.len());
        for (item, request) in items.iter().zip(requests) {
            sent.push(match request {
                Ok(request) => {
                    let publish = publish(&channel, exchange, request, item.payload);
                    self.by(deadline, publish).await
                }
                Err(reply) => Err(Fate::Known(reply)),
            });
        }
        let mut fates = Vec::with_capacity(items.len());
        for sent in sent {
            fates.push(match sent {
                Ok(confirm) => {
                    self.by(deadline, confirm).await.map_or_else(|fate| fate, Fate::answered)
                }
                Err(fate) => fate,
            });
        }
        self.learn(channel, &fates);
        fates
    }

    /// The result, or what became of the message without one.
    async fn by<T>(
        &self,
        deadline: Instant,
        result: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Fate> {
        match timeout_at(deadline, result).await {
            Ok(result) => result.map_err(Fate::Failed),
            Err(_) => Err(Fate::Known(Err(self.late()))),
        }
    }

    /// What is known when nothing has come in time.
    fn late(&self) -> Failure {
        self.blocked().unwrap_or(Failure::TimedOut)
    }

    /// A queue whose messages come back is no more. A channel on which all was answered is kept.
    fn learn(&self, channel: Channel, fates: &[Fate]) {
        for returned in fates.iter().filter_map(Fate::returned) {
            self.declared().remove(&returned.routing_key);
        }
        let answered = |fate: &Fate| matches!(fate, Fate::Answered { .. } | Fate::Known(Ok(_)));
        if fates.iter().all(answered) {
            self.keep(channel);
        }
    }

    fn declared(&self) -> MutexGuard<'_, Known> {
        self.declared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn publish(
    channel: &Channel,
    exchange: &str,
    request: Request,
    payload: &[u8],
) -> Result<PublisherConfirm, Error> {
    let exchange = ShortString::from(exchange);
    let Request { routing_key, properties } = request;
    channel.basic_publish(exchange, routing_key, MANDATORY, payload, properties).await
}

fn unsent(requests: Vec<Result<Request, Reply>>, failure: &Failure) -> Vec<Fate> {
    let fate = |request: Result<Request, Reply>| {
        Fate::Known(request.err().unwrap_or_else(|| Err(failure.clone())))
    };
    requests.into_iter().map(fate).collect()
}

fn quorum() -> FieldTable {
    let mut arguments = FieldTable::default();
    let kind = AMQPValue::LongString(LongString::from("quorum"));
    arguments.insert("x-queue-type".into(), kind);
    arguments
}
