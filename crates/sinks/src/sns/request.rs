//! Entries → a PublishBatch.

use crate::aws::{Call, Entry, TYPE};
use aws_sdk_sns::{
    error::BuildError,
    types::{MessageAttributeValue, PublishBatchRequestEntry},
};

/// The entries of a call, numbered.
pub fn entries(call: &Call) -> Result<Vec<PublishBatchRequestEntry>, BuildError> {
    call.entries.iter().enumerate().map(|(number, entry)| request(number, entry)).collect()
}

fn request(number: usize, entry: &Entry) -> Result<PublishBatchRequestEntry, BuildError> {
    let mut request =
        PublishBatchRequestEntry::builder().id(number.to_string()).message(&entry.body);
    request = request.set_subject(entry.subject.clone());
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
