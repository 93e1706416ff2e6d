//! Entries → a SendMessageBatch.

use crate::aws::{Call, Entry, TYPE};
use aws_sdk_sqs::{
    error::BuildError,
    types::{MessageAttributeValue, SendMessageBatchRequestEntry},
};

/// The entries of a call, numbered.
pub fn entries(call: &Call) -> Result<Vec<SendMessageBatchRequestEntry>, BuildError> {
    call.entries.iter().enumerate().map(|(number, entry)| request(number, entry)).collect()
}

fn request(number: usize, entry: &Entry) -> Result<SendMessageBatchRequestEntry, BuildError> {
    let mut request =
        SendMessageBatchRequestEntry::builder().id(number.to_string()).message_body(&entry.body);
    for (name, value) in &entry.attributes {
        let value = MessageAttributeValue::builder().data_type(TYPE).string_value(value).build()?;
        request = request.message_attributes(name, value);
    }
    if let Some(fifo) = &entry.fifo {
        request =
            request.message_group_id(&fifo.group).message_deduplication_id(&fifo.deduplication);
    }
    request.build()
}
