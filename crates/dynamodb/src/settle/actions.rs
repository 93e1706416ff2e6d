//! The actions of which transactions are made. Pure.

use super::key;
use crate::{
    aside::{Place, Record},
    error::refused,
    item::{
        Item,
        name::{ASIDE, DELIVERED_AT, DELIVERY_TIME, EXPIRES_AT, OUTSTANDING},
        number, text,
    },
    leases::{holds, leases_key},
    ticks::Ticks,
};
use aws_sdk_dynamodb::{
    error::BuildError,
    types::{ConditionCheck, Delete, Put, TransactWriteItem, Update},
};
use std::time::Duration;
use tidegate_core::{StoreError, outbox::LaneLease};

/// The names of the two tables.
#[derive(Clone, Copy)]
pub(crate) struct Tables<'a> {
    pub messages: &'a str,
    pub side: &'a str,
}

/// An update that marks a message as delivered and removes an attribute, and its values. Its names are `#time`, `#at`
/// and, with a time to live, `#expires`.
pub(crate) fn delivered(at: Ticks, ttl: Option<Duration>, without: &str) -> (String, Item) {
    let mut values =
        Item::from([(":time".to_owned(), number(at.0)), (":at".to_owned(), text(at.text()))]);
    let mut expires = "";
    if let Some(ttl) = ttl {
        expires = ", #expires = :expires";
        values.insert(":expires".to_owned(), number(at.after(ttl).unix_ms() / 1_000));
    }
    (format!("SET #time = :time, #at = :at{expires} REMOVE {without}"), values)
}

/// Nothing of a transaction is done if one of these lanes is not leased any more.
pub(crate) fn check_lanes(
    tables: Tables<'_>,
    lanes: &[LaneLease],
) -> Result<TransactWriteItem, StoreError> {
    let (condition, values) = holds(lanes);
    let check = ConditionCheck::builder()
        .table_name(tables.side)
        .set_key(Some(leases_key()))
        .condition_expression(condition)
        .set_expression_attribute_values(Some(values))
        .build();
    Ok(TransactWriteItem::builder().condition_check(check.map_err(unbuilt)?).build())
}

/// Writes a record, whether it is there or not.
pub(crate) fn put_record(
    tables: Tables<'_>,
    record: &Record,
) -> Result<TransactWriteItem, StoreError> {
    let put = Put::builder().table_name(tables.side).set_item(Some(record.item())).build();
    Ok(TransactWriteItem::builder().put(put.map_err(unbuilt)?).build())
}

/// Removes a record, whether it is there or not.
pub(crate) fn delete_record(
    tables: Tables<'_>,
    place: &Place,
) -> Result<TransactWriteItem, StoreError> {
    let delete = Delete::builder().table_name(tables.side).set_key(Some(place.key())).build();
    Ok(TransactWriteItem::builder().delete(delete.map_err(unbuilt)?).build())
}

/// A message that is outstanding as it was read is set aside. It does not expire there.
pub(crate) fn leave_outstanding(
    tables: Tables<'_>,
    id: &str,
    outstanding: Ticks,
    place: &Place,
) -> Result<TransactWriteItem, StoreError> {
    let update = Update::builder()
        .table_name(tables.messages)
        .set_key(Some(key(id)))
        .update_expression("SET #aside = :place REMOVE #outstanding, #expires")
        // Or it is there already, if the answer to the first copy of this was lost.
        .condition_expression("#outstanding = :outstanding OR #aside = :place")
        .expression_attribute_names("#aside", ASIDE)
        .expression_attribute_names("#outstanding", OUTSTANDING)
        .expression_attribute_names("#expires", EXPIRES_AT)
        .expression_attribute_values(":place", text(place.text()))
        .expression_attribute_values(":outstanding", number(outstanding.0))
        .build();
    Ok(TransactWriteItem::builder().update(update.map_err(unbuilt)?).build())
}

/// A message is set aside elsewhere now.
pub(crate) fn move_aside(
    tables: Tables<'_>,
    id: &str,
    from: &Place,
    to: &Place,
) -> Result<TransactWriteItem, StoreError> {
    let update = Update::builder()
        .table_name(tables.messages)
        .set_key(Some(key(id)))
        .update_expression("SET #aside = :to")
        .condition_expression("#aside IN (:from, :to)")
        .expression_attribute_names("#aside", ASIDE)
        .expression_attribute_values(":to", text(to.text()))
        .expression_attribute_values(":from", text(from.text()))
        .build();
    Ok(TransactWriteItem::builder().update(update.map_err(unbuilt)?).build())
}

/// A message that was set aside is delivered.
pub(crate) fn deliver_aside(
    tables: Tables<'_>,
    id: &str,
    place: &Place,
    at: Ticks,
    ttl: Option<Duration>,
) -> Result<TransactWriteItem, StoreError> {
    let (update, mut values) = delivered(at, ttl, "#aside");
    values.insert(":place".to_owned(), text(place.text()));
    let mut update = Update::builder()
        .table_name(tables.messages)
        .set_key(Some(key(id)))
        .update_expression(update)
        .condition_expression("#aside = :place")
        .expression_attribute_names("#aside", ASIDE)
        .expression_attribute_names("#time", DELIVERY_TIME)
        .expression_attribute_names("#at", DELIVERED_AT)
        .set_expression_attribute_values(Some(values));
    if ttl.is_some() {
        update = update.expression_attribute_names("#expires", EXPIRES_AT);
    }
    Ok(TransactWriteItem::builder().update(update.build().map_err(unbuilt)?).build())
}

/// A message that is set aside there is removed for good.
pub(crate) fn delete_message(
    tables: Tables<'_>,
    id: &str,
    place: &Place,
) -> Result<TransactWriteItem, StoreError> {
    let delete = Delete::builder()
        .table_name(tables.messages)
        .set_key(Some(key(id)))
        .condition_expression("#aside = :place")
        .expression_attribute_names("#aside", ASIDE)
        .expression_attribute_values(":place", text(place.text()))
        .build();
    Ok(TransactWriteItem::builder().delete(delete.map_err(unbuilt)?).build())
}

pub(crate) fn unbuilt(error: BuildError) -> StoreError {
    refused("make a request", error.to_string())
}
