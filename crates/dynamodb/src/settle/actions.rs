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
use std::{collections::HashMap, time::Duration};
use tidegate_core::{StoreError, outbox::LaneLease};

/// The names of the two tables.
#[derive(Clone, Copy)]
pub(crate) struct Tables<'a> {
    pub messages: &'a str,
    pub side: &'a str,
}

/// How much of a mark is written: an item may have no room for all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// As Brighter writes it, with the time to live.
    Enough,
    /// Without the time as a text, which is the longest part, and which nothing is found by.
    Little,
    /// Only what moves the message from the indexes of outstanding messages to those of delivered ones. This is
    /// shorter than what it replaces, so that there is always room for it.
    Least,
}

impl Room {
    pub const ALL: [Self; 3] = [Self::Enough, Self::Little, Self::Least];
}

/// An update that marks a message as delivered, with its names and values.
pub(crate) struct Delivered {
    pub update: String,
    pub names: HashMap<String, String>,
    pub values: Item,
}

/// Marks a message as delivered. It is neither outstanding nor set aside any more.
pub(crate) fn delivered(at: Ticks, ttl: Option<Duration>, room: Room, was: &str) -> Delivered {
    let mut set = vec!["#time = :time"];
    let mut names = HashMap::from([("#time".to_owned(), DELIVERY_TIME.to_owned())]);
    let mut values = Item::from([(":time".to_owned(), number(at.0))]);
    if room == Room::Enough {
        set.push("#at = :at");
        names.insert("#at".to_owned(), DELIVERED_AT.to_owned());
        values.insert(":at".to_owned(), text(at.text()));
    }
    if let Some(ttl) = ttl.filter(|_| room != Room::Least) {
        set.push("#expires = :expires");
        names.insert("#expires".to_owned(), EXPIRES_AT.to_owned());
        values.insert(":expires".to_owned(), number(at.after(ttl).unix_ms() / 1_000));
    }
    names.insert("#aside".to_owned(), ASIDE.to_owned());
    names.insert("#outstanding".to_owned(), OUTSTANDING.to_owned());
    Delivered { update: format!("SET {} REMOVE {was}", set.join(", ")), names, values }
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
    place: Place,
) -> Result<TransactWriteItem, StoreError> {
    let delete = Delete::builder().table_name(tables.side).set_key(Some(place.key())).build();
    Ok(TransactWriteItem::builder().delete(delete.map_err(unbuilt)?).build())
}

/// A message that is outstanding as it was read is set aside. It does not expire there. What the item gets is shorter
/// than what it loses: there is always room for it.
pub(crate) fn leave_outstanding(
    tables: Tables<'_>,
    id: &str,
    outstanding: Ticks,
    place: Place,
) -> Result<TransactWriteItem, StoreError> {
    let update = Update::builder()
        .table_name(tables.messages)
        .set_key(Some(key(id)))
        .update_expression("SET #aside = :place REMOVE #outstanding, #expires")
        // Or it is there already, if the answer to the first copy of this was lost.
        .condition_expression(
            "#outstanding = :outstanding OR #aside = :place AND attribute_not_exists(#outstanding)",
        )
        .expression_attribute_names("#aside", ASIDE)
        .expression_attribute_names("#outstanding", OUTSTANDING)
        .expression_attribute_names("#expires", EXPIRES_AT)
        .expression_attribute_values(":place", text(place.mark()))
        .expression_attribute_values(":outstanding", number(outstanding.0))
        .build();
    Ok(TransactWriteItem::builder().update(update.map_err(unbuilt)?).build())
}

/// A message is set aside elsewhere now.
pub(crate) fn move_aside(
    tables: Tables<'_>,
    id: &str,
    from: Place,
    to: Place,
) -> Result<TransactWriteItem, StoreError> {
    let update = Update::builder()
        .table_name(tables.messages)
        .set_key(Some(key(id)))
        .update_expression("SET #aside = :to")
        .condition_expression("#aside IN (:from, :to) AND attribute_not_exists(#outstanding)")
        .expression_attribute_names("#aside", ASIDE)
        .expression_attribute_names("#outstanding", OUTSTANDING)
        .expression_attribute_values(":to", text(to.mark()))
        .expression_attribute_values(":from", text(from.mark()))
        .build();
    Ok(TransactWriteItem::builder().update(update.map_err(unbuilt)?).build())
}

/// A message that was set aside is delivered. One that was made outstanding again meanwhile is to be delivered again.
pub(crate) fn deliver_aside(
    tables: Tables<'_>,
    id: &str,
    place: Place,
    delivered: Delivered,
) -> Result<TransactWriteItem, StoreError> {
    let Delivered { update, names, mut values } = delivered;
    values.insert(":place".to_owned(), text(place.mark()));
    let update = Update::builder()
        .table_name(tables.messages)
        .set_key(Some(key(id)))
        .update_expression(update)
        .condition_expression("#aside = :place AND attribute_not_exists(#outstanding)")
        .set_expression_attribute_names(Some(names))
        .set_expression_attribute_values(Some(values));
    Ok(TransactWriteItem::builder().update(update.build().map_err(unbuilt)?).build())
}

/// A message that is set aside there is removed for good.
pub(crate) fn delete_message(
    tables: Tables<'_>,
    id: &str,
    place: Place,
) -> Result<TransactWriteItem, StoreError> {
    let delete = Delete::builder()
        .table_name(tables.messages)
        .set_key(Some(key(id)))
        .condition_expression("#aside = :place AND attribute_not_exists(#outstanding)")
        .expression_attribute_names("#aside", ASIDE)
        .expression_attribute_names("#outstanding", OUTSTANDING)
        .expression_attribute_values(":place", text(place.mark()))
        .build();
    Ok(TransactWriteItem::builder().delete(delete.map_err(unbuilt)?).build())
}

pub(crate) fn unbuilt(error: BuildError) -> StoreError {
    refused("make a request", error.to_string())
}
