//! What AWS says → what became of the entries of a call, or of the connection.

use super::code::{Meaning, meaning};
use crate::{
    broker::Reply,
    failure::{Failure, find, root},
    reason::clean,
    retry_after,
};
use aws_credential_types::provider::error::CredentialsError;
use aws_smithy_runtime_api::client::{orchestrator::HttpResponse, result::SdkError};
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use std::{
    error::Error,
    time::{Duration, SystemTime},
};
use tidegate_core::sink::Verdict;

const NO_CREDENTIALS: &str = "no AWS credentials were found: set AWS_ACCESS_KEY_ID and \
                              AWS_SECRET_ACCESS_KEY, name a `profile`, or give the machine a role";

/// What a service says about the entries of a call, which go by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    pub done: Vec<String>,
    pub failed: Vec<Failed>,
}

/// Why an entry was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    pub id: String,
    pub code: String,
    pub message: String,
    /// Whether the service blames the entry.
    pub sender_fault: bool,
}

/// Why a whole call came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The service says so.
    Said { code: String, message: String, status: u16, retry_after: Option<Duration> },
    /// There is no answer.
    Failed(Failure),
}

/// Whom an answer is from, and about what.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// `SQS`.
    pub service: &'static str,
    /// `queue`.
    pub kind: &'static str,
    /// Which queue.
    pub place: &'a str,
    pub region: &'a str,
    /// What it needs to be allowed: `sqs:SendMessage`.
    pub right: &'static str,
}

/// What follows from an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judged {
    /// A reply for each entry.
    Each(Vec<Reply>),
    /// Perhaps one entry is at fault: the halves will tell.
    Halve,
    /// The same for all entries, and for all that would go to the same place now.
    Stop(Reply),
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Refusal {
    /// What is behind an error of the SDK.
    pub fn of<E>(error: &SdkError<E, HttpResponse>) -> Self
    where
        E: Error + ProvideErrorMetadata + 'static,
    {
        match error {
            SdkError::ServiceError(context) => {
                Self::said(context.err().code(), context.err().message(), context.raw())
            }
            SdkError::ResponseError(context) => Self::said(None, None, context.raw()),
            SdkError::TimeoutError(_) => Self::Failed(Failure::TimedOut),
            SdkError::ConstructionFailure(_) => Self::Failed(failure(error, Failure::Broken)),
            _ => Self::Failed(failure(error, Failure::Unavailable)),
        }
    }

    /// What a service said. An error that has no code goes by its status.
    fn said(code: Option<&str>, message: Option<&str>, raw: &HttpResponse) -> Self {
        let status = raw.status().as_u16();
        let code = code.map_or_else(|| status.to_string(), str::to_owned);
        let retry_after = wait(raw);
        if raw.status().is_success() {
            // What cannot be read may have been good news, or not.
            let message = "an answer that cannot be read".to_owned();
            return Self::Said { code, message, status: 500, retry_after };
        }
        let message = message.unwrap_or_default().to_owned();
        Self::Said { code, message, status, retry_after }
    }

    /// Why something that changes nothing was not answered; `None` if the service is only busy.
    pub fn failure(self, scene: Scene<'_>) -> Option<Failure> {
        match self {
            Self::Failed(failure) => Some(failure),
            Self::Said { code, message, status, .. } => {
                let told = told(scene.service, &code, &message);
                match meaning(&code, &message, Some(status)) {
                    Meaning::Throttled => None,
                    Meaning::Unavailable => Some(Failure::Unavailable(told)),
                    meaning => Some(Failure::Broken(advice(meaning, scene, &told).unwrap_or(told))),
                }
            }
        }
    }

    /// Whether the service knows who asks, but not the place, or not whether to tell.
    pub fn is_about_place(&self) -> bool {
        match self {
            Self::Said { code, message, status, .. } => {
                let meaning = meaning(code, message, Some(*status));
                matches!(meaning, Meaning::Missing | Meaning::Denied)
            }
            Self::Failed(_) => false,
        }
    }
}

/// What became of a call with so many entries.
pub fn judge(answer: Result<Told, Refusal>, entries: usize, scene: Scene<'_>) -> Judged {
    match answer {
        Ok(told) => Judged::Each(replies(&told, entries, scene)),
        Err(Refusal::Failed(failure)) => Judged::Stop(Err(failure)),
        Err(Refusal::Said { code, message, status, retry_after }) => {
            let text = told(scene.service, &code, &message);
            let meaning = meaning(&code, &message, Some(status));
            match (meaning, advice(meaning, scene, &text)) {
                (Meaning::Throttled, _) => Judged::Stop(Ok(Verdict::Throttled { retry_after })),
                (Meaning::Unavailable, _) => Judged::Stop(Err(Failure::Unavailable(text))),
                (_, Some(advice)) => Judged::Stop(Err(Failure::Broken(advice))),
                _ if entries > 1 => Judged::Halve,
                (Meaning::TooLarge | Meaning::Invalid, _) => {
                    Judged::Each(vec![Ok(Verdict::Dead(text))])
                }
                _ => Judged::Each(vec![Ok(Verdict::Retry(text))]),
            }
        }
    }
}

/// A reply for each entry. One is done if the service says so, and not otherwise.
fn replies(told: &Told, entries: usize, scene: Scene<'_>) -> Vec<Reply> {
    let reply = |number: usize| {
        let id = number.to_string();
        match told.failed.iter().find(|failed| failed.id == id) {
            Some(failed) => failed.reply(scene),
            None if told.done.contains(&id) => Ok(Verdict::Done),
            None => {
                let service = scene.service;
                Err(Failure::Unavailable(format!("{service} does not say what became of it")))
            }
        }
    };
    (0..entries).map(reply).collect()
}

impl Failed {
    fn reply(&self, scene: Scene<'_>) -> Reply {
        let text = told(scene.service, &self.code, &self.message);
        let meaning = meaning(&self.code, &self.message, None);
        match (meaning, advice(meaning, scene, &text)) {
            (Meaning::Throttled, _) => Ok(Verdict::Throttled { retry_after: None }),
            (Meaning::Unavailable, _) => Err(Failure::Unavailable(text)),
            (Meaning::TooLarge | Meaning::Invalid, _) => Ok(Verdict::Dead(text)),
            (_, Some(advice)) => Err(Failure::Broken(advice)),
            _ if self.sender_fault => Ok(Verdict::Retry(text)),
            _ => Err(Failure::Unavailable(text)),
        }
    }
}

/// What to do, if it is the same for every message.
fn advice(meaning: Meaning, scene: Scene<'_>, told: &str) -> Option<String> {
    let Scene { kind, place, region, right, .. } = scene;
    Some(match meaning {
        Meaning::Missing => format!(
            "the {kind} {place} does not exist in {region}: create it, or correct `{kind}` or `region`"
        ),
        Meaning::Unknown => {
            format!("AWS refuses the credentials: check the access key and its secret ({told})")
        }
        Meaning::Expired => format!("the AWS credentials have expired: renew them ({told})"),
        Meaning::Clock => {
            format!("AWS refuses the time of requests: set this machine's clock ({told})")
        }
        Meaning::Denied => {
            format!("the {kind} {place} may not be used: allow {right} to the credentials ({told})")
        }
        Meaning::Key => {
            format!(
                "the key that encrypts the {kind} {place} cannot be used: allow its use ({told})"
            )
        }
        Meaning::Unfit => {
            format!("the {kind} {place} cannot be used so: check `{kind}` and `endpoint` ({told})")
        }
        _ => return None,
    })
}

/// What the service said, in a line.
fn told(service: &str, code: &str, message: &str) -> String {
    match (clean(code), clean(message)) {
        (code, message) if message.is_empty() => format!("{service} answered {code}"),
        (code, message) => format!("{service} answered {code}: {message}"),
    }
}

/// How long a service wants to be left alone.
fn wait(response: &HttpResponse) -> Option<Duration> {
    retry_after::parse(response.headers().get("retry-after")?, SystemTime::now())
}

/// Why nothing came back.
fn failure(error: &(dyn Error + 'static), other: fn(String) -> Failure) -> Failure {
    if let Some(failure) = find::<Failure>(error) {
        return failure.clone();
    }
    match find::<CredentialsError>(error) {
        Some(CredentialsError::CredentialsNotLoaded(_)) => {
            Failure::Broken(NO_CREDENTIALS.to_owned())
        }
        Some(wrong @ CredentialsError::InvalidConfiguration(_)) => {
            Failure::Broken(format!("the AWS credentials cannot be used: {}", root(wrong)))
        }
        Some(absent) => {
            Failure::Unavailable(format!("the AWS credentials cannot be got: {}", root(absent)))
        }
        None => other(root(error)),
    }
}

#[cfg(test)]
mod tests;
