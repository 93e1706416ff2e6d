//! What an error code means, whichever service says it, about a call or about an entry of it.

/// What an error code means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Too much is asked of the service.
    Throttled,
    /// The service is not able to work.
    Unavailable,
    /// The queue or topic does not exist.
    Missing,
    /// Whoever asks is not known.
    Unknown,
    /// The credentials were good once.
    Expired,
    /// The clock is wrong: requests are valid for minutes.
    Clock,
    /// Whoever asks has no right to do that.
    Denied,
    /// The key that encrypts the queue or topic cannot be used.
    Key,
    /// What is declared does not fit the service.
    Unfit,
    /// There is too much in one call.
    TooLarge,
    /// A message cannot be taken, now or later.
    Invalid,
    /// Anything else.
    Other,
}

/// What a code and the status of its answer mean; an entry has no status of its own.
pub fn meaning(code: &str, message: &str, status: Option<u16>) -> Meaning {
    by_name(code, message).unwrap_or(match status {
        Some(429) => Meaning::Throttled,
        Some(408 | 500..) => Meaning::Unavailable,
        Some(401 | 403) => Meaning::Denied,
        Some(413) => Meaning::TooLarge,
        _ => Meaning::Other,
    })
}

fn by_name(code: &str, message: &str) -> Option<Meaning> {
    let name = plain(code);
    // SQS says `KMS.DisabledException` and `KmsDisabled`, SNS says `KMSDisabled`.
    let about_key = code.get(..3).is_some_and(|prefix| prefix.eq_ignore_ascii_case("kms"));
    if is_throttle(name) {
        return Some(Meaning::Throttled);
    }
    if about_key {
        return Some(Meaning::Key);
    }
    Some(match name {
        "InternalError"
        | "InternalFailure"
        | "InternalServerError"
        | "ServiceUnavailable"
        | "RequestTimeout"
        | "Internal"
        | "InternalServer" => Meaning::Unavailable,
        "QueueDoesNotExist"
        | "NonExistentQueue"
        | "QueueDeletedRecently"
        | "NotFound"
        | "TopicNotFound" => Meaning::Missing,
        "RequestExpired" | "RequestTimeTooSkewed" => Meaning::Clock,
        "SignatureDoesNotMatch" | "InvalidSignature"
            if message.contains("Signature expired") || message.contains("not yet current") =>
        {
            Meaning::Clock
        }
        "ExpiredToken" | "TokenRefreshRequired" => Meaning::Expired,
        "InvalidClientTokenId"
        | "UnrecognizedClient"
        | "InvalidAccessKeyId"
        | "SignatureDoesNotMatch"
        | "InvalidSignature"
        | "IncompleteSignature"
        | "MissingAuthenticationToken"
        | "InvalidToken"
        | "NotAuthorized" => Meaning::Unknown,
        "AccessDenied" | "AuthorizationError" | "UnauthorizedOperation" | "OptInRequired" => {
            Meaning::Denied
        }
        "InvalidSecurity"
        | "InvalidAddress"
        | "UnsupportedOperation"
        | "InvalidAction"
        | "UnknownOperation" => Meaning::Unfit,
        // The place is at fault, and not a message.
        "InvalidParameter" | "InvalidParameterValue"
            if message.contains("TopicArn") || message.contains("QueueUrl") =>
        {
            Meaning::Unfit
        }
        "BatchRequestTooLong" | "RequestEntityTooLarge" => Meaning::TooLarge,
        "InvalidMessageContents"
        | "MessageTooLong"
        | "InvalidParameterValue"
        | "InvalidParameter"
        | "ParameterValueInvalid"
        | "InvalidAttributeName"
        | "InvalidAttributeValue"
        | "Validation"
        | "ValidationError" => Meaning::Invalid,
        _ => return None,
    })
}

/// `AWS.SimpleQueueService.NonExistentQueue` is `NonExistentQueue`, `ThrottlingException` is
/// `Throttling`.
fn plain(code: &str) -> &str {
    let name = code.rsplit(['.', '#']).next().unwrap_or(code);
    name.strip_suffix("Exception").unwrap_or(name)
}

fn is_throttle(name: &str) -> bool {
    name.contains("Throttl")
        || matches!(
            name,
            "OverLimit"
                | "RequestLimitExceeded"
                | "BandwidthLimitExceeded"
                | "LimitExceeded"
                | "TooManyRequests"
                | "SlowDown"
                | "PriorRequestNotComplete"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_has_its_meaning_in_every_spelling() {
        let cases: [(Meaning, &[&str]); 11] = [
            (
                Meaning::Throttled,
                &[
                    "Throttling",
                    "ThrottlingException",
                    "Throttled",
                    "RequestThrottled",
                    "KmsThrottled",
                    "KMS.ThrottlingException",
                    "KMSThrottling",
                    "OverLimit",
                    "RequestLimitExceeded",
                    "TooManyRequestsException",
                ],
            ),
            (Meaning::Unavailable, &["InternalError", "ServiceUnavailable", "InternalFailure"]),
            (
                Meaning::Missing,
                &["QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue", "NotFound"],
            ),
            (Meaning::Unknown, &["InvalidClientTokenId", "UnrecognizedClientException"]),
            (Meaning::Expired, &["ExpiredToken", "ExpiredTokenException"]),
            (Meaning::Clock, &["RequestExpired"]),
            (Meaning::Denied, &["AccessDenied", "AccessDeniedException", "AuthorizationError"]),
            (Meaning::Key, &["KmsDisabled", "KMS.NotFoundException", "KMSAccessDenied"]),
            (Meaning::TooLarge, &["AWS.SimpleQueueService.BatchRequestTooLong"]),
            (
                Meaning::Invalid,
                &["InvalidMessageContents", "com.amazonaws.sqs#InvalidParameterValue"],
            ),
            (Meaning::Other, &["NewError", ""]),
        ];
        for (expected, codes) in cases {
            for code in codes {
                assert_eq!(meaning(code, "", Some(400)), expected, "{code}");
            }
        }
    }

    #[test]
    fn a_status_counts_if_the_code_says_nothing() {
        let of = |status: u16| meaning("", "", Some(status));
        assert_eq!(of(429), Meaning::Throttled);
        assert_eq!(
            (of(500), of(503), of(408)),
            (Meaning::Unavailable, Meaning::Unavailable, Meaning::Unavailable)
        );
        assert_eq!(
            (of(403), of(413), of(400)),
            (Meaning::Denied, Meaning::TooLarge, Meaning::Other)
        );
        assert_eq!(meaning("AccessDenied", "", Some(500)), Meaning::Denied);
    }

    #[test]
    fn a_place_that_cannot_be_is_no_fault_of_a_message() {
        let of = |message: &str| meaning("InvalidParameter", message, Some(400));
        assert_eq!(of("Invalid parameter: TopicArn Reason: no such region"), Meaning::Unfit);
        assert_eq!(of("Invalid parameter: Message too long"), Meaning::Invalid);
    }

    #[test]
    fn a_wrong_clock_is_told_from_a_wrong_secret() {
        let of = |message: &str| meaning("SignatureDoesNotMatch", message, Some(403));
        assert_eq!(of("Signature expired: 20260101 is now earlier than 20260102"), Meaning::Clock);
        assert_eq!(of("The request signature we calculated does not match"), Meaning::Unknown);
    }
}
