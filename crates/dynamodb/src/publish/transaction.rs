//! A caller's own transaction: whether it fits, and whether it was carried out before.

use super::{MAX_BYTES, OPERATION, write::IS_THERE};
use crate::{
    MAX_ACTIONS,
    error::refused,
    item::{Item, size, value_size},
};
use aws_sdk_dynamodb::{
    error::SdkError,
    operation::transact_write_items::TransactWriteItemsError,
    types::{AttributeValue, TransactWriteItem},
};
use std::{collections::HashMap, ops::Range};
use tidegate_core::StoreError;

/// Refuses a transaction that DynamoDB would refuse, before it is sent: as far as it can be known from the
/// transaction alone. Of an update, DynamoDB counts the whole item that comes out of it, and here only its key and the
/// values that the update names are known.
pub fn check_transaction(actions: &[TransactWriteItem]) -> Result<(), StoreError> {
    if actions.len() > MAX_ACTIONS {
        let problem = format!(
            "the transaction has {} actions, and DynamoDB takes {MAX_ACTIONS}: publish fewer messages in it",
            actions.len()
        );
        return Err(refused(OPERATION, problem));
    }
    let bytes: usize = actions.iter().map(action_size).sum();
    match bytes > MAX_BYTES {
        true => Err(refused(
            OPERATION,
            format!(
                "the transaction has {bytes} bytes, and DynamoDB takes {MAX_BYTES}: publish fewer messages in it"
            ),
        )),
        false => Ok(()),
    }
}

/// Items and keys, and the values of expressions; the names of those are no part of what is stored.
fn action_size(action: &TransactWriteItem) -> usize {
    type Values = HashMap<String, AttributeValue>;
    let sum = |item: &Item, values: Option<&Values>| {
        size(item) + values.map_or(0, |values| values.values().map(value_size).sum())
    };
    let put = action.put().map_or(0, |it| sum(it.item(), it.expression_attribute_values()));
    let update = action.update().map_or(0, |it| sum(it.key(), it.expression_attribute_values()));
    let delete = action.delete().map_or(0, |it| sum(it.key(), it.expression_attribute_values()));
    let check = action.condition_check();
    put + update + delete + check.map_or(0, |it| sum(it.key(), it.expression_attribute_values()))
}

/// Whether a transaction was refused because its messages are there: then it was carried out when it was sent before,
/// with all that is in it, and nothing is left to do. `messages` says which of its actions are those that
/// [`DynamoDb::items`](crate::DynamoDb::items) gave.
///
/// It is known for as long as the messages are in the table. If some are there and others are not, the answer is no:
/// then an id was used for two messages.
pub fn already_published<R>(
    error: &SdkError<TransactWriteItemsError, R>,
    messages: Range<usize>,
) -> bool {
    let Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) =
        error.as_service_error()
    else {
        return false;
    };
    let reasons = cancelled.cancellation_reasons().get(messages).unwrap_or_default();
    !reasons.is_empty() && reasons.iter().all(|reason| reason.code() == Some(IS_THERE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::text;
    use aws_sdk_dynamodb::types::{
        CancellationReason, ConditionCheck, Delete, Put, Update,
        error::TransactionCanceledException,
    };

    fn key() -> Item {
        Item::from([("MessageId".to_owned(), text("a"))])
    }

    #[test]
    fn all_kinds_of_actions_are_counted() {
        let large = || text("x".repeat(MAX_BYTES));
        let action = TransactWriteItem::builder;
        let put = Put::builder().table_name("t").set_item(Some(key()));
        let update = Update::builder().table_name("t").set_key(Some(key())).update_expression("x");
        let delete = Delete::builder().table_name("t").set_key(Some(key()));
        let check = ConditionCheck::builder().table_name("t").set_key(Some(key()));
        let check = check.condition_expression("x");
        let small = [
            action().put(put.clone().build().unwrap()).build(),
            action().update(update.clone().build().unwrap()).build(),
            action().delete(delete.clone().build().unwrap()).build(),
            action().condition_check(check.clone().build().unwrap()).build(),
        ];
        check_transaction(&small).unwrap();
        let put = put.expression_attribute_values(":v", large()).build().unwrap();
        let update = update.expression_attribute_values(":v", large()).build().unwrap();
        let delete = delete.expression_attribute_values(":v", large()).build().unwrap();
        let check = check.expression_attribute_values(":v", large()).build().unwrap();
        for large in [
            action().put(put).build(),
            action().update(update).build(),
            action().delete(delete).build(),
            action().condition_check(check).build(),
        ] {
            let error = check_transaction(&[large]).unwrap_err().to_string();
            assert!(error.contains("DynamoDB takes 4194304"), "{error}");
        }
    }

    #[test]
    fn a_transaction_is_known_again_by_all_of_its_messages() {
        let refused = |codes: &[&str]| {
            let reason = |code: &&str| CancellationReason::builder().code(*code).build();
            let cancelled = TransactionCanceledException::builder()
                .set_cancellation_reasons(Some(codes.iter().map(reason).collect()));
            let error = TransactWriteItemsError::TransactionCanceledException(cancelled.build());
            SdkError::service_error(error, ())
        };
        let there = "ConditionalCheckFailed";
        assert!(already_published(&refused(&[there, there, "None"]), 0..2));
        assert!(already_published(&refused(&["None", there]), 1..2));
        for other in [
            refused(&[there, "None"]),
            refused(&["None", "None", there]),
            refused(&["TransactionConflict", there]),
            refused(&[]),
        ] {
            assert!(!already_published(&other, 0..2), "{other:?}");
        }
        assert!(!already_published(&refused(&[there]), 0..0));
        let other = SdkError::<TransactWriteItemsError, ()>::construction_failure("no request");
        assert!(!already_published(&other, 0..1));
    }
}
