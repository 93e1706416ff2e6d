//! Why there is no answer.

use crate::{address::Forbidden, reason::clean};
use rustls::CertificateError;
use std::{error::Error, fmt, io};
use tidegate_core::sink::{Answer, Hint, Outcome, SinkError};

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Nothing was sent, and nothing will be until the config changes.
    Broken(String),
    /// The service cannot be reached, or hung up.
    Unavailable(String),
    /// No answer in time.
    TimedOut,
}

impl Failure {
    /// Finds out what is behind an error of the client.
    pub fn of(error: &reqwest::Error, host: &str) -> Self {
        if let Some(forbidden) = find::<Forbidden>(error) {
            return Self::Broken(forbidden.to_string());
        }
        let tls = find::<rustls::Error>(error).filter(|_| error.is_connect());
        if let Some(problem) = tls.and_then(|tls| permanent(tls, "http")) {
            return Self::Broken(format!("{host} {problem}"));
        }
        if error.is_builder() {
            return Self::Broken(format!("no request can be made of it: {}", root(error)));
        }
        if error.is_connect() && error.is_timeout() {
            return Self::Unavailable(format!("{host} takes no connection in time"));
        }
        let attempt =
            if error.is_connect() { "cannot connect to" } else { "lost the connection to" };
        Self::Unavailable(format!("{attempt} {host}: {}", root(error)))
    }

    /// Finds out why a connection was not made. `plain` is the scheme without TLS.
    pub fn of_connecting(error: &(dyn Error + 'static), host: &str, plain: &str) -> Self {
        if let Some(forbidden) = find::<Forbidden>(error) {
            return Self::Broken(forbidden.to_string());
        }
        if let Some(problem) = find::<rustls::Error>(error).and_then(|tls| permanent(tls, plain)) {
            return Self::Broken(format!("{host} {problem}"));
        }
        Self::Unavailable(format!("cannot connect to {host}: {}", root(error)))
    }

    /// What happened, in a line.
    pub fn reason(&self) -> &str {
        match self {
            Self::Broken(problem) | Self::Unavailable(problem) => problem,
            Self::TimedOut => "it gives no answer in time",
        }
    }

    /// What it means for items that are sent together.
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Broken(problem) => Outcome::Broken(problem),
            Self::Unavailable(problem) => Outcome::Unavailable(problem),
            Self::TimedOut => Outcome::TimedOut,
        }
    }
}

/// What happened. An error so that it can be carried through a client and found again.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

impl Error for Failure {}

impl From<Forbidden> for Failure {
    fn from(forbidden: Forbidden) -> Self {
        Self::Broken(forbidden.to_string())
    }
}

impl From<Failure> for Answer {
    fn from(failure: Failure) -> Self {
        Self { outcome: failure.outcome(), hint: Hint::default() }
    }
}

impl From<Failure> for SinkError {
    fn from(failure: Failure) -> Self {
        Self(failure.reason().to_owned())
    }
}

/// What is wrong with the service's end of TLS and does not pass by itself.
fn permanent(error: &rustls::Error, plain: &str) -> Option<String> {
    match error {
        rustls::Error::InvalidCertificate(flaw) => Some(format!(
            "has a certificate that does not verify ({}): give its CA as `ca_file`, and use the \
             name that it is for",
            wrong(flaw)
        )),
        rustls::Error::NoCertificatesPresented => Some("has no certificate".to_owned()),
        rustls::Error::InvalidMessage(_) => {
            Some(format!("does not speak TLS there: check the port, or use {plain}://"))
        }
        _ => None,
    }
}

/// What is wrong with a certificate.
fn wrong(flaw: &CertificateError) -> String {
    match flaw {
        CertificateError::UnknownIssuer => "nobody here knows its issuer".to_owned(),
        CertificateError::Other(error) if format!("{error:?}").contains("CaUsedAsEndEntity") => {
            "it is signed by itself, as a CA's is".to_owned()
        }
        other => clean(&rustls::Error::InvalidCertificate(other.clone()).to_string()),
    }
}

/// The first error of this type among the causes.
pub fn find<'e, T: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e T> {
    causes(error).find_map(<dyn Error>::downcast_ref)
}

/// What began it all, on one line.
pub fn root(error: &(dyn Error + 'static)) -> String {
    causes(error).last().map(|cause| clean(&cause.to_string())).unwrap_or_default()
}

fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| {
        // An I/O error passes over the error that it wraps.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        wrapped.map(|inner| inner as &(dyn Error + 'static)).or_else(|| error.source())
    })
}
