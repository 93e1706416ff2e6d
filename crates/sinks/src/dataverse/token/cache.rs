//! The kept token, with time as an argument.

use crate::{Secret, failure::Failure};
use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// A token is renewed this long before it expires, or when a fifth of its life is left.
const AHEAD: Duration = Duration::from_secs(300);

/// No token lives longer, whatever its issuer says: sums with a clock must not overflow.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// A token.
#[derive(Debug)]
pub struct Token {
    /// To be sent.
    pub value: Secret,
    due: Instant,
    expires: Instant,
    /// Whether the one before it was refused.
    second: bool,
    accepted: AtomicBool,
}

/// What is kept of a user's tokens.
#[derive(Debug, Default)]
pub struct Cache {
    token: Option<Arc<Token>>,
    /// Whether the last token was refused by the service.
    refused: bool,
    /// Why there is none, and since when that is known.
    failure: Option<(Instant, Failure)>,
}

/// What a cache has.
#[derive(Debug)]
pub enum Found {
    /// A token.
    Fresh(Arc<Token>),
    /// One that is good, but should be renewed.
    Due(Arc<Token>),
    /// None that is good.
    Nothing,
}

impl Token {
    /// The service took it.
    pub fn accept(&self) {
        self.accepted.store(true, Ordering::Relaxed);
    }
}

impl Cache {
    /// What there is.
    pub fn find(&self, now: Instant) -> Found {
        match &self.token {
            Some(token) if now < token.due => Found::Fresh(Arc::clone(token)),
            Some(token) if now < token.expires => Found::Due(Arc::clone(token)),
            _ => Found::Nothing,
        }
    }

    /// What became of the renewal that ended after `asked`, if one did.
    pub fn settled_since(
        &self,
        asked: Instant,
        now: Instant,
    ) -> Option<Result<Arc<Token>, Failure>> {
        match (self.find(now), &self.failure) {
            (Found::Fresh(token) | Found::Due(token), _) => Some(Ok(token)),
            (Found::Nothing, Some((at, failure))) if *at >= asked => Some(Err(failure.clone())),
            (Found::Nothing, _) => None,
        }
    }

    /// Keeps what a renewal brought that began at `begun` and ended `now`.
    pub fn settle(
        &mut self,
        issued: Result<(Secret, Duration), Failure>,
        begun: Instant,
        now: Instant,
    ) -> Result<Arc<Token>, Failure> {
        match issued {
            Ok((value, lifetime)) => {
                let lifetime = lifetime.min(LONGEST);
                let token = Arc::new(Token {
                    value,
                    due: begun + (lifetime - AHEAD.min(lifetime / 5)),
                    expires: begun + lifetime,
                    second: mem::take(&mut self.refused),
                    accepted: AtomicBool::new(false),
                });
                self.token = Some(Arc::clone(&token));
                self.failure = None;
                Ok(token)
            }
            Err(failure) => {
                self.failure = Some((now, failure.clone()));
                Err(failure)
            }
        }
    }

    /// Drops a token that was refused. Many requests may have carried it: the first one counts.
    /// True if a new token does not help: it was one already, and never worked.
    pub fn refuse(&mut self, token: &Arc<Token>) -> bool {
        if self.token.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, token)) {
            self.token = None;
            self.refused = true;
        }
        token.second && !token.accepted.load(Ordering::Relaxed)
    }
}
