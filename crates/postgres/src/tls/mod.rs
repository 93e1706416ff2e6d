//! TLS with a server: always with *ring*, trusting what the system trusts or what the address names.

mod binding;
mod client;
mod connector;
mod failure;
mod key;
mod verify;

pub(crate) use connector::Connector;
pub(crate) use failure::{Failure, of_io};

use crate::error::bad_address;
use rustls::ClientConfig;
use std::{
    path::PathBuf,
    sync::{Arc, Mutex, Once, PoisonError},
};
use tidegate_core::StoreError;

/// Instead of a file: the authorities that the system trusts.
pub(crate) const SYSTEM: &str = "system";

/// Whether TLS is spoken, and what is known about the server then. The words are libpq's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Never.
    Disable,
    /// If the server does; it is not verified.
    Prefer,
    /// Always. The server is verified as with `VerifyFull`, unless the address says `sslverify=none`.
    Require,
    /// Always, with a server that a trusted authority has certified under any name.
    VerifyCa,
    /// Always, with the server that the address names.
    VerifyFull,
}

impl Mode {
    fn parse(word: &str) -> Result<Self, StoreError> {
        Ok(match word {
            "disable" => Self::Disable,
            "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            "allow" => {
                return Err(bad_address(
                    "sslmode=allow is not supported: use prefer, or better verify-full",
                ));
            }
            _ => {
                return Err(bad_address(
                    "sslmode is one of disable, prefer, require, verify-ca and verify-full",
                ));
            }
        })
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Prefer => "prefer",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }
}

/// Which authorities may certify the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Roots {
    /// Those that the system trusts.
    System,
    /// Those in this file, and no others.
    File(PathBuf),
}

/// What is asked of the server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verification {
    /// Nothing.
    None,
    /// A trusted authority has signed it.
    Authority,
    /// … for the name of the server.
    Name,
}

/// A certificate and its key, by which this client is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// How TLS is spoken.
#[derive(Debug)]
pub(crate) struct Settings {
    pub mode: Mode,
    pub verification: Verification,
    roots: Roots,
    identity: Option<Identity>,
    /// The handshake comes first: the server is told what for.
    direct: bool,
    /// What was read last. Files are read again for each connection, because certificates are renewed while
    /// a process lives; one that cannot be read at that moment ends nothing.
    last: Mutex<Option<Arc<ClientConfig>>>,
}

impl Settings {
    /// `take` hands out a parameter of the address.
    pub(crate) fn new(
        mut take: impl FnMut(&str) -> Option<String>,
        direct: bool,
    ) -> Result<Self, StoreError> {
        let roots = match take("sslrootcert") {
            None => None,
            Some(word) if word == SYSTEM => Some(Roots::System),
            Some(path) => Some(Roots::File(path.into())),
        };
        // Whoever names an authority wants the server to be verified.
        let mode = match (take("sslmode"), &roots) {
            (Some(word), _) => Mode::parse(&word)?,
            (None, Some(_)) => Mode::VerifyFull,
            (None, None) => Mode::Prefer,
        };
        let verification = match take("sslverify").as_deref() {
            None => verification(mode),
            Some("none") if mode == Mode::Require => Verification::None,
            Some("none") => {
                return Err(bad_address("sslverify=none goes with sslmode=require only"));
            }
            Some(_) => return Err(bad_address("sslverify can only be none")),
        };
        refuse_contradictions(mode, verification, roots.as_ref())?;
        if take("sslpassword").is_some() {
            return Err(bad_address(format!("sslpassword is not supported: {}", key::DECRYPT)));
        }
        let identity = match (take("sslcert"), take("sslkey")) {
            (None, None) => None,
            (Some(certificate), Some(key)) => {
                Some(Identity { certificate: certificate.into(), key: key.into() })
            }
            (Some(_), None) => return Err(bad_address("sslcert needs its key in sslkey")),
            (None, Some(_)) => return Err(bad_address("sslkey needs its certificate in sslcert")),
        };
        if mode == Mode::Disable && identity.is_some() {
            return Err(bad_address(
                "sslcert and sslkey have no effect with sslmode=disable; use sslmode=verify-full",
            ));
        }
        let roots = roots.unwrap_or(Roots::System);
        Ok(Self { mode, verification, roots, identity, direct, last: Mutex::default() })
    }

    /// Says once that the server is not verified, although TLS was asked for.
    pub(crate) fn warn_if_unverified(&self) {
        static SAID: Once = Once::new();
        if self.mode == Mode::Require && self.verification == Verification::None {
            SAID.call_once(|| {
                tracing::warn!(
                    "the server's certificate is not verified (sslverify=none): whoever is on the way can \
                     read and change everything; use sslmode=verify-full"
                );
            });
        }
    }

    /// What the next handshake needs. Reads files; fails if they never could be read.
    pub(crate) fn client(&self) -> Result<Arc<ClientConfig>, Failure> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let from_files = self.identity.is_some() || matches!(self.roots, Roots::File(_));
        if let Some(known) = last.as_ref().filter(|_| !from_files) {
            return Ok(known.clone());
        }
        match (client::read(self), last.as_ref()) {
            (Ok(client), _) => Ok(last.insert(Arc::new(client)).clone()),
            (Err(failure), Some(known)) => {
                tracing::warn!("{failure}; going on with what was read before");
                Ok(known.clone())
            }
            (Err(failure), None) => Err(failure),
        }
    }
}

fn verification(mode: Mode) -> Verification {
    match mode {
        Mode::Disable | Mode::Prefer => Verification::None,
        Mode::VerifyCa => Verification::Authority,
        Mode::Require | Mode::VerifyFull => Verification::Name,
    }
}

fn refuse_contradictions(
    mode: Mode,
    verification: Verification,
    roots: Option<&Roots>,
) -> Result<(), StoreError> {
    if roots.is_some() && verification == Verification::None {
        let mode = mode.as_str();
        let problem = format!(
            "sslrootcert has no effect: nothing is verified here (sslmode={mode}); \
             use sslmode=verify-full"
        );
        return Err(bad_address(problem));
    }
    // Anybody can get a certificate from one of the system's authorities, for a name of their own.
    if mode == Mode::VerifyCa && !matches!(roots, Some(Roots::File(_))) {
        return Err(bad_address(
            "sslmode=verify-ca needs an authority of your own in sslrootcert=FILE; \
             with those of the system use verify-full",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
