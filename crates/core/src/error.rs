//! What goes wrong at the seams: kind (what) × class (what to do about it).

use std::{error::Error, fmt};

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The store does not answer.
    Unreachable,
    /// The store answers, but takes no writes.
    ReadOnly,
    /// No schema, or an older one than this binary needs.
    SchemaOutdated,
    /// The address is malformed, or leads to something that is no Tidegate store.
    BadAddress,
    /// What was asked for is not there.
    NotFound,
    /// The request makes no sense for the current state.
    Refused,
    /// Too many messages are outstanding.
    Full,
    /// The store went back in time since the caller learned what it knows: after a crash, a failover, or from a
    /// backup. The caller must start afresh from what is stored.
    WentBack,
    /// The numbers that the store gives to new messages start anew: they may be numbers that were read before.
    IdsRestarted,
    /// The call took longer than its deadline; whether it took effect is unknown.
    Deadline,
    /// Stored data cannot be read.
    Corrupt,
    /// Anything else that the store says.
    Other,
}

/// What a caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The same call will fail again.
    Permanent,
    /// The same call may succeed at once or soon.
    Transient,
    /// Nothing will succeed until the store is back.
    Unavailable,
}

/// A failed call to a store.
#[derive(Debug)]
pub struct StoreError {
    kind: Kind,
    class: Class,
    operation: &'static str,
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl StoreError {
    /// `operation` names what was tried; `message` says what came back and what to do.
    pub fn new(
        kind: Kind,
        class: Class,
        operation: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self { kind, class, operation, message: message.into(), source: None }
    }

    /// The store is not where the caller left it.
    pub fn went_back(operation: &'static str) -> Self {
        let message = "the store went back in time (a crash, a failover or a restored backup): \
            what was remembered is forgotten, and read again from what is stored";
        Self::new(Kind::WentBack, Class::Permanent, operation, message)
    }

    /// Attaches the error that caused this one.
    pub fn because(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What a caller can do about it.
    pub fn class(&self) -> Class {
        self.class
    }

    /// Whether the same call may succeed later without anybody's help.
    pub fn is_passing(&self) -> bool {
        self.class != Class::Permanent
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.operation, self.message)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
