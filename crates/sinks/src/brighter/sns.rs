//! A notification of Amazon SNS.

use super::{
    Message,
    attributes::{Sent, Service, sent},
};

/// What is published to the topic with this ARN, or why it cannot be. Without a deduplication id of its own, a
/// message goes by its id.
pub fn notification<'a>(message: &Message<'a>, topic_arn: &str) -> Result<Sent<'a>, String> {
    sent(message, topic_arn, Service::Sns)
}
