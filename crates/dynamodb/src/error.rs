//! What goes wrong, and what people can do about it.

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_dynamodb::{error::SdkError, operation::transact_write_items::TransactWriteItemsError};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use std::error::Error;
use tidegate_core::{Class, Kind, StoreError};

const SET_CREDENTIALS: &str = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, name a profile (`profile=NAME` in the \
                               address), or give the machine a role";

/// The code of an action of a transaction whose condition does not hold.
const CONDITION: &str = "ConditionalCheckFailed";
/// … and of one that would make an item that DynamoDB does not store.
const VALIDATION: &str = "ValidationError";
/// … and of one whose item somebody else changes at this moment.
const CONFLICT: &str = "TransactionConflict";

/// Why a call came to nothing.
#[derive(Debug)]
pub enum Failure {
    /// Too much is asked of the table, or of the account.
    Throttled(String),
    /// Somebody else changes the same items at this moment.
    Busy(String),
    /// AWS does not take the credentials.
    Credentials(String),
    /// DynamoDB does not accept the request as it is: for one, the item would become too large.
    Invalid(String),
    /// A condition of the call does not hold.
    Condition,
    /// A transaction was not carried out: the code of each of its actions, `None` where nothing was wrong.
    Cancelled(Vec<String>),
    /// There is no such table or index.
    Missing(String),
    /// Anything else.
    Store(StoreError),
}

impl Failure {
    /// What it means for a caller that expects none of the special ones.
    pub fn into_error(self, operation: &'static str) -> StoreError {
        match self {
            Self::Store(error) => error,
            Self::Throttled(told) => throttled(operation, &told),
            Self::Busy(told) => {
                let told = format!("others change the same items again and again ({told})");
                StoreError::new(Kind::Other, Class::Transient, operation, told)
            }
            Self::Credentials(told) => {
                StoreError::new(Kind::BadAddress, Class::Permanent, operation, told)
            }
            Self::Invalid(told) => {
                let told = format!("DynamoDB refuses the request ({told})");
                StoreError::new(Kind::Other, Class::Permanent, operation, told)
            }
            Self::Condition => StoreError::new(
                Kind::Other,
                Class::Transient,
                operation,
                "somebody else changed the item at the same time",
            ),
            Self::Cancelled(codes) => {
                // What is not valid now will not be so later.
                let is_final = codes.iter().any(|code| code == VALIDATION);
                let class = if is_final { Class::Permanent } else { Class::Transient };
                let codes =
                    codes.iter().filter(|code| *code != "None").cloned().collect::<Vec<_>>();
                let told = format!("DynamoDB cancelled the transaction: {}", codes.join(", "));
                StoreError::new(Kind::Other, class, operation, told)
            }
            Self::Missing(told) => missing(operation, &told),
        }
    }
}

/// A request that makes no sense.
pub fn refused(operation: &'static str, problem: impl Into<String>) -> StoreError {
    StoreError::new(Kind::Refused, Class::Permanent, operation, problem)
}

/// Something stored that cannot be read.
pub fn corrupt(operation: &'static str, problem: impl Into<String>) -> StoreError {
    StoreError::new(Kind::Corrupt, Class::Permanent, operation, problem)
}

fn missing(operation: &'static str, told: &str) -> StoreError {
    let advice = format!(
        "DynamoDB knows no such table or index: run `tidegate migrate`, or check the table, the region and the \
         endpoint in the address ({told})"
    );
    StoreError::new(Kind::SchemaOutdated, Class::Permanent, operation, advice)
}

/// The table takes no more for now.
pub fn throttled(operation: &'static str, told: &str) -> StoreError {
    let advice = format!(
        "DynamoDB throttles the table for longer than a call may wait: give it more capacity, or make it on demand \
         ({told})"
    );
    StoreError::new(Kind::Other, Class::Transient, operation, advice)
}

/// What is behind an error of the SDK.
pub fn judge<E>(operation: &'static str, place: &str, error: &SdkError<E, HttpResponse>) -> Failure
where
    E: Error + ProvideErrorMetadata + 'static,
{
    let store =
        |kind, class, told: String| Failure::Store(StoreError::new(kind, class, operation, told));
    match error {
        SdkError::ServiceError(context) => {
            let (code, message) = (context.err().code(), context.err().message());
            let status = context.raw().status().as_u16();
            judge_code(
                operation,
                place,
                code.unwrap_or_default(),
                message.unwrap_or_default(),
                status,
            )
        }
        SdkError::TimeoutError(_) => {
            store(Kind::Deadline, Class::Transient, format!("{place} gives no answer in time"))
        }
        SdkError::ResponseError(context) => {
            let status = context.raw().status().as_u16();
            let told = format!("{place} gave an answer that cannot be read (status {status})");
            store(Kind::Other, Class::Transient, told)
        }
        _ => match find::<CredentialsError>(error) {
            Some(CredentialsError::CredentialsNotLoaded(_)) => {
                let told = format!("no AWS credentials were found: {SET_CREDENTIALS}");
                store(Kind::BadAddress, Class::Permanent, told)
            }
            Some(wrong @ CredentialsError::InvalidConfiguration(_)) => {
                let told = format!("the AWS credentials cannot be used: {}", root(wrong));
                store(Kind::BadAddress, Class::Permanent, told)
            }
            Some(absent) => {
                let told = format!(
                    "the AWS credentials cannot be got: {}; {SET_CREDENTIALS}",
                    root(absent)
                );
                store(Kind::Unreachable, Class::Unavailable, told)
            }
            None => {
                let told = format!(
                    "{place} cannot be reached: {}: check the region and the endpoint in the address",
                    root(error)
                );
                store(Kind::Unreachable, Class::Unavailable, told)
            }
        },
    }
}

/// What is behind an error of a transaction: which of its actions were refused.
pub fn judge_transaction(
    operation: &'static str,
    place: &str,
    error: &SdkError<TransactWriteItemsError, HttpResponse>,
) -> Failure {
    if let SdkError::ServiceError(context) = error
        && let TransactWriteItemsError::TransactionCanceledException(cancelled) = context.err()
    {
        let code = |reason: &aws_sdk_dynamodb::types::CancellationReason| {
            reason.code().unwrap_or("None").to_owned()
        };
        return cancelled_by(cancelled.cancellation_reasons().iter().map(code).collect());
    }
    judge(operation, place, error)
}

/// What is final comes first: sent again, the transaction would be cancelled for the same reason.
fn cancelled_by(codes: Vec<String>) -> Failure {
    let has = |names: &[&str]| codes.iter().any(|code| names.contains(&code.as_str()));
    if has(&[CONDITION, VALIDATION]) {
        return Failure::Cancelled(codes);
    }
    if codes.iter().any(|code| is_throttle(code)) {
        return Failure::Throttled("a transaction was throttled".to_owned());
    }
    match has(&[CONFLICT]) {
        true => Failure::Busy("transactions disturb each other".to_owned()),
        false => Failure::Cancelled(codes),
    }
}

/// Which of some actions DynamoDB refused, by the codes of their transaction.
pub fn refused_actions(codes: &[String], actions: std::ops::Range<usize>) -> Option<Refused> {
    let own = codes.get(actions.start..actions.end.min(codes.len())).unwrap_or_default();
    let has = |name: &str| own.iter().any(|code| code == name);
    match (has(CONDITION), has(VALIDATION)) {
        (true, _) => Some(Refused::Condition),
        (false, true) => Some(Refused::Invalid),
        (false, false) => None,
    }
}

/// Why an action of a transaction was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Its condition does not hold.
    Condition,
    /// DynamoDB does not store what it would make of the item.
    Invalid,
}

fn judge_code(
    operation: &'static str,
    place: &str,
    code: &str,
    message: &str,
    status: u16,
) -> Failure {
    let name = code.rsplit('#').next().unwrap_or(code);
    let told = if message.is_empty() { name.to_owned() } else { format!("{name}: {message}") };
    let store =
        |kind, class, told: String| Failure::Store(StoreError::new(kind, class, operation, told));
    if is_throttle(name) || status == 429 {
        return Failure::Throttled(told);
    }
    match name {
        "ConditionalCheckFailedException" => Failure::Condition,
        "ResourceNotFoundException" => Failure::Missing(told),
        "UnrecognizedClientException"
        | "InvalidSignatureException"
        | "MissingAuthenticationTokenException"
        | "IncompleteSignatureException" => Failure::Credentials(format!(
            "AWS refuses the credentials: check the access key, its secret and the region ({told})"
        )),
        "ExpiredTokenException" => {
            Failure::Credentials(format!("the AWS credentials have expired: renew them ({told})"))
        }
        "AccessDeniedException" => store(
            Kind::BadAddress,
            Class::Permanent,
            format!(
                "the credentials may not do this: allow it to them, see docs/dynamodb.md ({told})"
            ),
        ),
        // An index that is not there is a validation error, and not a resource that is missing.
        "ValidationException" if message.contains("index") => Failure::Missing(told),
        "ValidationException" => Failure::Invalid(told),
        // The same transaction is being carried out already: sent again, it says what became of it.
        "TransactionInProgressException"
        | "TransactionConflictException"
        | "ReplicatedWriteConflictException" => Failure::Busy(told),
        "ResourceInUseException" => store(Kind::Other, Class::Transient, told),
        _ if status >= 500 => store(
            Kind::Unreachable,
            Class::Unavailable,
            format!("{place} is not able to work ({told})"),
        ),
        _ => store(Kind::Other, Class::Permanent, format!("DynamoDB refuses the request ({told})")),
    }
}

fn is_throttle(code: &str) -> bool {
    matches!(
        code,
        "ProvisionedThroughputExceededException"
            | "ProvisionedThroughputExceeded"
            | "ThrottlingException"
            | "ThrottlingError"
            | "RequestLimitExceeded"
    )
}

/// An error among those that caused this one.
fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    std::iter::successors(Some(error), |error| (*error).source())
        .find_map(|error| error.downcast_ref())
}

/// What is at the bottom of it.
fn root(error: &(dyn Error + 'static)) -> String {
    let bottom = std::iter::successors(Some(error), |error| (*error).source()).last();
    bottom.map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(codes: &[&str]) -> Vec<String> {
        codes.iter().map(|code| (*code).to_owned()).collect()
    }

    #[test]
    fn what_will_pass_is_told_from_what_is_final() {
        let of = |name: &str| judge_code("settle", "the table", name, "told", 400);
        for busy in ["TransactionInProgressException", "TransactionConflictException"] {
            assert!(matches!(of(busy), Failure::Busy(_)), "{busy}");
            assert!(of(busy).into_error("settle").is_passing(), "{busy}");
        }
        assert!(matches!(of("ThrottlingException"), Failure::Throttled(_)));
        assert!(matches!(of("ExpiredTokenException"), Failure::Credentials(_)));
        assert!(matches!(of("ValidationException"), Failure::Invalid(_)));
        assert_eq!(of("ValidationException").into_error("settle").class(), Class::Permanent);
    }

    #[test]
    fn a_cancelled_transaction_is_sent_again_only_if_that_can_help() {
        let busy = cancelled_by(codes(&["None", "TransactionConflict"]));
        assert!(matches!(busy, Failure::Busy(_)), "{busy:?}");
        let throttled = cancelled_by(codes(&["TransactionConflict", "ThrottlingError"]));
        assert!(matches!(throttled, Failure::Throttled(_)), "{throttled:?}");
        for last in ["ConditionalCheckFailed", "ValidationError"] {
            let failure = cancelled_by(codes(&["ThrottlingError", "TransactionConflict", last]));
            assert!(matches!(failure, Failure::Cancelled(_)), "{failure:?}");
        }
        let invalid = Failure::Cancelled(codes(&["None", "ValidationError"])).into_error("settle");
        assert_eq!(invalid.class(), Class::Permanent);
    }

    #[test]
    fn the_actions_that_were_refused_are_known() {
        let codes = codes(&["None", "ValidationError", "None", "ConditionalCheckFailed"]);
        assert_eq!(refused_actions(&codes, 0..1), None);
        assert_eq!(refused_actions(&codes, 1..3), Some(Refused::Invalid));
        assert_eq!(refused_actions(&codes, 1..4), Some(Refused::Condition));
        assert_eq!(refused_actions(&codes, 2..9), Some(Refused::Condition));
        assert_eq!(refused_actions(&codes, 7..9), None);
    }
}
