//! What SQS answers → what became of each entry.

use crate::aws::{Failed, Told};
use aws_sdk_sqs::operation::send_message_batch::SendMessageBatchOutput;

/// What SQS says about each entry.
pub fn told(answer: &SendMessageBatchOutput) -> Told {
    let failed = answer.failed().iter().map(|failed| Failed {
        id: failed.id().to_owned(),
        code: failed.code().to_owned(),
        message: failed.message().unwrap_or_default().to_owned(),
        sender_fault: failed.sender_fault(),
    });
    let done = answer.successful().iter().map(|done| done.id().to_owned());
    Told { done: done.collect(), failed: failed.collect() }
}
