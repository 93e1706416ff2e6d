//! What goes wrong, and what people can do about it.

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_dynamodb::{error::SdkError, operation::transact_write_items::TransactWriteItemsError};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use std::error::Error;
use tidegate_core::{Class, Kind, StoreError};

const SET_CREDENTIALS: &str = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, name a profile (`profile=NAME` in the \
                               address), or give the machine a role";

/// Why a call came to nothing.
#[derive(Debug)]
pub enum Failure {
    /// Too much is asked of the table, or of the account.
    Throttled(String),
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
            Self::Condition => StoreError::new(
                Kind::Other,
                Class::Transient,
                operation,
                "somebody else changed the item at the same time",
            ),
            Self::Cancelled(codes) => {
                let codes =
                    codes.iter().filter(|code| *code != "None").cloned().collect::<Vec<_>>();
                let told = format!("DynamoDB cancelled the transaction: {}", codes.join(", "));
                StoreError::new(Kind::Other, Class::Transient, operation, told)
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
        let codes: Vec<String> = cancelled.cancellation_reasons().iter().map(code).collect();
        let is_throttle = |code: &String| is_throttle(code);
        if codes.iter().any(is_throttle) {
            return Failure::Throttled("a transaction was throttled".to_owned());
        }
        return Failure::Cancelled(codes);
    }
    judge(operation, place, error)
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
        | "IncompleteSignatureException" => store(
            Kind::BadAddress,
            Class::Permanent,
            format!(
                "AWS refuses the credentials: check the access key, its secret and the region ({told})"
            ),
        ),
        "ExpiredTokenException" => store(
            Kind::BadAddress,
            Class::Permanent,
            format!("the AWS credentials have expired: renew them ({told})"),
        ),
        "AccessDeniedException" => store(
            Kind::BadAddress,
            Class::Permanent,
            format!(
                "the credentials may not do this: allow it to them, see docs/dynamodb.md ({told})"
            ),
        ),
        // An index that is not there is a validation error, and not a resource that is missing.
        "ValidationException" if message.contains("index") => Failure::Missing(told),
        "TransactionInProgressException"
        | "TransactionConflictException"
        | "ResourceInUseException"
        | "ReplicatedWriteConflictException" => store(Kind::Other, Class::Transient, told),
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
            | "TransactionInProgress"
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
