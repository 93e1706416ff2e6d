//! A message of Amazon SQS.

use super::{
    Message,
    attributes::{Sent, Service, sent},
};

/// What is sent to the queue with this URL, or why it cannot be. Without a deduplication id of its own, a message
/// goes by its id.
pub fn message<'a>(message: &Message<'a>, queue_url: &str) -> Result<Sent<'a>, String> {
    sent(message, queue_url, Service::Sqs)
}
