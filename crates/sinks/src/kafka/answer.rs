//! What librdkafka and the brokers say → what became of the messages.

use super::producer::Trouble;
use rdkafka::error::RDKafkaErrorCode as Code;
use tidegate_core::sink::{Outcome, Verdict};

/// What became of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    Is(Verdict),
    /// No broker said anything in time.
    Silent,
    /// It is the same for every message.
    Broken(String),
}

/// What else is known when a message fails.
#[derive(Clone, Debug)]
pub struct Scene<'a> {
    pub topic: &'a str,
    /// Whether all messages go to this topic.
    pub only: bool,
    pub trouble: Option<Trouble>,
}

/// What became of a message that failed.
pub fn judge(code: Code, scene: &Scene<'_>) -> Fate {
    let topic = scene.topic;
    let why = || format!("Kafka says {code:?}: {}", describe(code));
    match code {
        Code::QueueFull | Code::ThrottlingQuotaExceeded => {
            Fate::Is(Verdict::Throttled { retry_after: None })
        }
        Code::MessageSizeTooLarge
        | Code::InvalidMessageSize
        | Code::InvalidRecord
        | Code::InvalidTimestamp
        | Code::InvalidTopic => Fate::Is(Verdict::Dead(why())),
        Code::UnknownTopic | Code::UnknownTopicOrPartition | Code::UnknownPartition => {
            Fate::Is(Verdict::Retry(format!("topic `{topic}` does not exist: create it")))
        }
        Code::TopicAuthorizationFailed => {
            let problem = format!("topic `{topic}` may not be written: {}", describe(code));
            if scene.only { Fate::Broken(problem) } else { Fate::Is(Verdict::Retry(problem)) }
        }
        code if denies(code) => Fate::Broken(why()),
        // Why it waited in vain is told to the producer only.
        Code::MessageTimedOut | Code::OperationTimedOut | Code::TimedOutQueue => {
            match &scene.trouble {
                Some(trouble) if denies(trouble.code) => Fate::Broken(trouble.text.clone()),
                Some(trouble) => Fate::Is(Verdict::Unavailable(trouble.text.clone())),
                None => Fate::Silent,
            }
        }
        Code::RequestTimedOut => Fate::Silent,
        code if is_absence(code) => Fate::Is(Verdict::Unavailable(why())),
        _ => Fate::Is(Verdict::Retry(why())),
    }
}

/// Whether a credential or a right is missing, whatever is sent.
fn denies(code: Code) -> bool {
    matches!(
        code,
        Code::Authentication
            | Code::SaslAuthenticationFailed
            | Code::UnsupportedSASLMechanism
            | Code::IllegalSASLState
            | Code::ClusterAuthorizationFailed
            | Code::SecurityDisabled
            | Code::SSL
    )
}

/// Whether brokers are not there, or the producer is not.
fn is_absence(code: Code) -> bool {
    matches!(
        code,
        Code::BrokerTransportFailure
            | Code::AllBrokersDown
            | Code::Resolve
            | Code::BrokerNotAvailable
            | Code::LeaderNotAvailable
            | Code::NotLeaderForPartition
            | Code::ReplicaNotAvailable
            | Code::NetworkException
            | Code::NotEnoughReplicas
            | Code::NotEnoughReplicasAfterAppend
            | Code::KafkaStorageError
            | Code::CoordinatorNotAvailable
            | Code::CoordinatorLoadInProgress
            | Code::BrokerDestroy
            | Code::PurgeQueue
            | Code::PurgeInflight
            | Code::Fatal
            | Code::OutOfOrderSequenceNumber
            | Code::DuplicateSequenceNumber
            | Code::InvalidProducerEpoch
            | Code::InvalidProducerIdMapping
            | Code::UnknownProducerId
            | Code::ProducerFenced
            | Code::GaplessGuarantee
    )
}

/// Kafka's own words, without their name.
fn describe(code: Code) -> String {
    let text = code.to_string();
    text.split_once(" (").map_or(text.clone(), |(_, rest)| rest.trim_end_matches(')').to_owned())
}

/// One outcome for all, if no message was answered: then the sink is not there, or full.
pub fn outcome(verdicts: Vec<Verdict>, silent: bool) -> Outcome {
    let mut told = verdicts.iter().filter(|verdict| **verdict != Verdict::Behind);
    match told.next() {
        Some(Verdict::Unavailable(reason))
            if told.all(|it| matches!(it, Verdict::Unavailable(_))) =>
        {
            if silent {
                Outcome::TimedOut
            } else {
                Outcome::Unavailable(reason.clone())
            }
        }
        Some(Verdict::Throttled { .. })
            if told.all(|it| matches!(it, Verdict::Throttled { .. })) =>
        {
            let reason = "the producer's queue is full".to_owned();
            Outcome::Throttled { retry_after: None, reason }
        }
        _ => Outcome::Answered(verdicts),
    }
}

#[cfg(test)]
mod tests;
