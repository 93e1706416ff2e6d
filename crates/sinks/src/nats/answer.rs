//! What NATS says → what became of a message, or of the connection.

use crate::{broker::Reply, failure::Failure, reason::clean};
use async_nats::{
    ConnectError, ConnectErrorKind, Event, ServerError,
    jetstream::{
        self, ErrorCode,
        context::{AccountError, AccountErrorKind, PublishError, PublishErrorKind},
    },
};
use std::error::Error;
use tidegate_core::sink::Verdict;

const NO_JETSTREAM: &str =
    "JetStream is not enabled there: enable it for the server and the account";

const NO_STREAM: &str = "no stream takes the subject";

/// Whether nobody has heard a message: no stream takes its subject, or there are no streams at all.
pub fn is_unheard(reply: &Reply) -> bool {
    matches!(reply, Ok(Verdict::Retry(reason)) if reason.starts_with(NO_STREAM))
}

/// What became of a message without an acknowledgement.
pub fn refused(error: &PublishError, subject: &str) -> Reply {
    match error.kind() {
        PublishErrorKind::StreamNotFound => {
            Ok(Verdict::Retry(format!("{NO_STREAM} `{subject}`: create one for it")))
        }
        PublishErrorKind::MaxPayloadExceeded => Ok(Verdict::Dead(format!(
            "it is larger than the server takes: {}",
            clean(&error.to_string())
        ))),
        PublishErrorKind::TimedOut => Err(Failure::TimedOut),
        PublishErrorKind::BrokenPipe => Err(lost()),
        PublishErrorKind::MaxAckPending => Ok(Verdict::Throttled { retry_after: None }),
        _ => match error.source().and_then(|source| source.downcast_ref()) {
            Some(error) => by_code(error),
            None => Ok(Verdict::Retry(clean(&error.to_string()))),
        },
    }
}

/// What JetStream's own error means.
fn by_code(error: &jetstream::Error) -> Reply {
    let text = clean(&format!("it answered {}: {error}", error.code()));
    match error.error_code() {
        ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM | ErrorCode::STREAM_HEADER_EXCEEDS_MAXIMUM => {
            Ok(Verdict::Dead(text))
        }
        // A stream that is full and does not discard: its consumers are behind.
        ErrorCode::STREAM_STORE_FAILED if text.contains("maximum") => {
            Ok(Verdict::Throttled { retry_after: None })
        }
        ErrorCode::INSUFFICIENT_RESOURCES
        | ErrorCode::ACCOUNT_RESOURCES_EXCEEDED
        | ErrorCode::STORAGE_RESOURCES_EXCEEDED
        | ErrorCode::MEMORY_RESOURCES_EXCEEDED
        | ErrorCode::STREAM_TOO_MANY_REQUESTS => Ok(Verdict::Throttled { retry_after: None }),
        ErrorCode::JETSTREAM_NOT_ENABLED
        | ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT
        | ErrorCode::NO_ACCOUNT => Err(Failure::Broken(NO_JETSTREAM.to_owned())),
        _ if error.code() >= 500 => Err(Failure::Unavailable(text)),
        _ => Ok(Verdict::Retry(text)),
    }
}

/// Why an account could not be looked at.
pub fn unchecked(error: &AccountError) -> Failure {
    match error.kind() {
        AccountErrorKind::JetStreamUnavailable => Failure::Broken(NO_JETSTREAM.to_owned()),
        AccountErrorKind::JetStream(error) => match by_code(&error) {
            Err(failure) => failure,
            Ok(_) => Failure::Unavailable(clean(&error.to_string())),
        },
        AccountErrorKind::TimedOut => Failure::TimedOut,
        AccountErrorKind::Other => Failure::Unavailable(clean(&error.to_string())),
    }
}

/// Why there is no connection.
pub fn unconnected(error: &ConnectError, place: &str) -> Failure {
    let refused = error.source().and_then(|source| source.downcast_ref::<ServerError>());
    let forgotten = |text: &str| {
        let text = text.to_ascii_lowercase();
        text.contains("authentication") && !text.contains("timeout")
    };
    match (error.kind(), refused) {
        (ConnectErrorKind::AuthorizationViolation, _) => {
            Failure::Broken(format!("{place} refuses the credentials"))
        }
        (ConnectErrorKind::Authentication, _) => {
            Failure::Broken(format!("{place} cannot be given the credentials"))
        }
        (_, Some(ServerError::Other(text))) if forgotten(text) => {
            Failure::Broken(format!("{place} refuses the credentials: {}", clean(text)))
        }
        (ConnectErrorKind::TimedOut, _) => {
            Failure::Unavailable(format!("{place} takes no connection in time"))
        }
        _ => Failure::of_connecting(error, place, "nats"),
    }
}

/// What an event means for messages that are under way.
#[derive(Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Nothing.
    Nothing,
    /// No answer will come any more.
    Lost(Failure),
    /// The message to this subject gets no answer.
    Forbidden { subject: String, reason: String },
}

/// What an event means.
pub fn meaning(event: &Event) -> Meaning {
    match event {
        Event::Disconnected | Event::Closed => Meaning::Lost(lost()),
        Event::ServerError(ServerError::AuthorizationViolation) => {
            Meaning::Lost(Failure::Broken("it refuses the credentials".to_owned()))
        }
        Event::ServerError(ServerError::Other(text)) => forbidden(text),
        _ => Meaning::Nothing,
    }
}

/// `Permissions Violation for Publish to "orders.created"`.
fn forbidden(text: &str) -> Meaning {
    let about_publishing =
        text.to_ascii_lowercase().starts_with("permissions violation for publish");
    match text.split('"').nth(1).filter(|_| about_publishing) {
        Some(subject) => {
            let reason = format!("the user may not publish to the subject `{subject}`: allow it");
            Meaning::Forbidden { subject: subject.to_owned(), reason }
        }
        None => Meaning::Nothing,
    }
}

fn lost() -> Failure {
    Failure::Unavailable("the connection to NATS was lost".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answered(status: u64, code: u64, description: &str) -> Reply {
        let error = json!({ "code": status, "err_code": code, "description": description });
        let error: jetstream::Error = serde_json::from_value(error).unwrap();
        refused(&PublishError::with_source(PublishErrorKind::Other, error), "s")
    }

    #[test]
    fn each_error_of_jetstream_has_its_meaning() {
        let throttled = Ok(Verdict::Throttled { retry_after: None });
        assert_eq!(answered(503, 10077, "maximum messages exceeded"), throttled);
        assert_eq!(answered(503, 10023, "insufficient resources"), throttled);
        let too_large = answered(400, 10054, "message size exceeds maximum allowed");
        assert!(
            matches!(&too_large, Ok(Verdict::Dead(it)) if it.contains("size")),
            "{too_large:?}"
        );
        assert!(matches!(answered(503, 10077, "disk"), Err(Failure::Unavailable(_))));
        assert!(matches!(answered(503, 10008, "unavailable"), Err(Failure::Unavailable(_))));
        assert!(matches!(answered(503, 10039, "not enabled"), Err(Failure::Broken(_))));
        assert!(matches!(answered(400, 10109, "sealed"), Ok(Verdict::Retry(_))));
    }

    #[test]
    fn errors_of_the_client_have_theirs() {
        let of = |kind| refused(&PublishError::new(kind), "orders");
        let Ok(Verdict::Retry(reason)) = of(PublishErrorKind::StreamNotFound) else { panic!() };
        assert_eq!(reason, "no stream takes the subject `orders`: create one for it");
        assert_eq!(of(PublishErrorKind::TimedOut), Err(Failure::TimedOut));
        assert!(matches!(of(PublishErrorKind::BrokenPipe), Err(Failure::Unavailable(_))));
        assert!(matches!(of(PublishErrorKind::MaxPayloadExceeded), Ok(Verdict::Dead(_))));
    }

    #[test]
    fn a_forbidden_subject_is_found_in_what_the_server_says() {
        let said = |text: &str| meaning(&Event::ServerError(ServerError::Other(text.to_owned())));
        let Meaning::Forbidden { subject, reason } =
            said("Permissions Violation for Publish to \"a.b\"")
        else {
            panic!()
        };
        assert_eq!(subject, "a.b");
        assert!(reason.contains("may not publish"), "{reason}");
        assert_eq!(said("Permissions Violation for Subscription to \"a\""), Meaning::Nothing);
        assert!(matches!(meaning(&Event::Disconnected), Meaning::Lost(Failure::Unavailable(_))));
    }
}
