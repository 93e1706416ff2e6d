//! What RabbitMQ says → what became of a message, a queue or a connection.

use crate::{broker::Reply, failure::Failure, reason::clean};
use lapin::{Confirmation, Error, ErrorKind, message::BasicReturnMessage, protocol::AMQPError};
use std::collections::HashMap;
use tidegate_core::sink::{Item, Verdict};

/// What came of publishing one message.
#[derive(Debug)]
pub enum Fate {
    /// Decided without RabbitMQ.
    Known(Reply),
    /// RabbitMQ said whether it has it, and perhaps sent one back. That may be another one: it
    /// confirms several at once, and then the client does not know which it was.
    Answered { has_it: bool, returned: Option<Returned> },
    /// RabbitMQ closed the channel or the connection, or that was lost.
    Failed(Error),
}

/// A message that came back.
#[derive(Debug, PartialEq, Eq)]
pub struct Returned {
    pub id: String,
    pub exchange: String,
    pub routing_key: String,
}

impl Fate {
    /// What a confirmation tells.
    pub fn answered(confirmation: Confirmation) -> Self {
        let has_it = confirmation.is_ack();
        Self::Answered { has_it, returned: confirmation.take_message().map(Returned::from) }
    }

    /// The message that came with the answer.
    pub fn returned(&self) -> Option<&Returned> {
        match self {
            Self::Answered { returned, .. } => returned.as_ref(),
            _ => None,
        }
    }

    /// Why RabbitMQ closed the channel or the connection.
    fn fault(&self) -> Option<&AMQPError> {
        match self {
            Self::Failed(error) => fault(error),
            _ => None,
        }
    }
}

impl From<BasicReturnMessage> for Returned {
    fn from(message: BasicReturnMessage) -> Self {
        let id = message.properties.message_id().as_ref().map(ToString::to_string);
        Self {
            id: id.unwrap_or_default(),
            exchange: message.exchange.to_string(),
            routing_key: message.routing_key.to_string(),
        }
    }
}

/// What became of the items of one channel.
pub fn judge(fates: Vec<Fate>, items: &[Item<'_>], exchange: &str) -> Vec<Reply> {
    let returned = fates.iter().filter_map(Fate::returned);
    let returned: HashMap<String, String> =
        returned.map(|it| (it.id.clone(), unrouted(it))).collect();
    let fault = fates.iter().find_map(Fate::fault).cloned();
    let judge_one = |(fate, item): (Fate, &Item<'_>)| match fate {
        Fate::Known(reply) => reply,
        Fate::Answered { has_it, .. } => Ok(match returned.get(item.id) {
            Some(reason) => Verdict::Retry(reason.clone()),
            None if has_it => Verdict::Done,
            None => Verdict::Retry("a queue did not take it (basic.nack)".to_owned()),
        }),
        Fate::Failed(error) => match &fault {
            Some(fault) => closed(fault, item, exchange),
            None => Err(lost(&error)),
        },
    };
    fates.into_iter().zip(items).map(judge_one).collect()
}

fn unrouted(returned: &Returned) -> String {
    let Returned { exchange, routing_key: key, .. } = returned;
    if exchange.is_empty() {
        return format!("there is no queue `{key}`: create it, or use `declare`");
    }
    format!("no queue is bound to the exchange `{exchange}` for the routing key `{key}`: bind one")
}

/// What it means for an item that its channel was closed. Only one is at fault, if any.
fn closed(fault: &AMQPError, item: &Item<'_>, exchange: &str) -> Reply {
    let text = said(fault);
    match (fault.get_id(), largest(&text)) {
        (406, Some(most)) if item.payload.len() > most => Ok(Verdict::Dead(text)),
        (404, _) => {
            Err(Failure::Broken(format!("there is no exchange `{exchange}`: create it ({text})")))
        }
        (403, _) => Err(Failure::Broken(format!("the user may not publish there: {text}"))),
        _ => Err(Failure::Unavailable(format!("RabbitMQ closed the channel: {text}"))),
    }
}

/// `… message size 20 is larger than configured max size 10`.
fn largest(text: &str) -> Option<usize> {
    let (_, most) =
        text.split_once("max size ").filter(|(before, _)| before.contains("message size"))?;
    most.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// What it means for messages to a queue that it could not be declared.
pub fn undeclared(error: &Error, queue: &str) -> Reply {
    let Some(fault) = fault(error) else { return Err(lost(error)) };
    let text = said(fault);
    match fault.get_id() {
        405 | 406 => Ok(Verdict::Retry(format!(
            "the queue `{queue}` is there, but is no durable quorum queue: {text}"
        ))),
        403 => Err(Failure::Broken(format!("the user may not declare queues: {text}"))),
        _ => Err(Failure::Unavailable(format!("RabbitMQ closed the channel: {text}"))),
    }
}

/// Why a check failed.
pub fn unchecked(error: &Error, exchange: &str) -> Failure {
    match fault(error) {
        Some(fault) if fault.get_id() == 404 => {
            Failure::Broken(format!("there is no exchange `{exchange}`: create it"))
        }
        Some(fault) => Failure::Broken(said(fault)),
        None => lost(error),
    }
}

/// Why there is no connection.
pub fn unconnected(error: &Error, place: &str) -> Failure {
    let Some(fault) = fault(error) else {
        if let ErrorKind::InvalidProtocolVersion(_) = error.kind() {
            return Failure::Broken(format!("{place} does not speak AMQP 0-9-1"));
        }
        return Failure::of_connecting(error, place, "amqp");
    };
    let text = said(fault);
    match fault.get_id() {
        403 => Failure::Broken(format!("{place} refuses the credentials: {text}")),
        // The virtual host is unknown or closed to the user; or there are too many connections.
        530 if !text.contains("limit") => Failure::Broken(format!("{place} refuses: {text}")),
        _ => Failure::Unavailable(format!("{place} takes no connection: {text}")),
    }
}

/// That a connection or a channel is no more.
pub fn lost(error: &Error) -> Failure {
    let text = clean(&error.to_string());
    Failure::Unavailable(format!("the connection to RabbitMQ was lost: {text}"))
}

fn fault(error: &Error) -> Option<&AMQPError> {
    match error.kind() {
        ErrorKind::ProtocolError(fault) => Some(fault),
        _ => None,
    }
}

/// RabbitMQ names exchanges, queues and users; payloads it does not.
fn said(fault: &AMQPError) -> String {
    clean(fault.get_message().as_str())
}

#[cfg(test)]
mod tests;
