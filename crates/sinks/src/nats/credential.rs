//! What proves to NATS who publishes.

use crate::{ConfigError, Secret};
use async_nats::{Auth, AuthError};
use nkeys::KeyPair;

/// What proves who publishes.
#[derive(Clone, Debug)]
pub enum Credential {
    /// Nothing.
    None,
    /// A token.
    Token(Secret),
    /// A user and a password.
    User(String, Secret),
    /// A user's JWT, and the seed of the key that it names.
    Jwt { jwt: Secret, seed: Secret },
}

impl Credential {
    /// What is in a `.creds` file: two blocks between lines of dashes.
    pub fn from_creds(text: &Secret) -> Result<Self, ConfigError> {
        let mut lines = text.reveal().lines().map(str::trim);
        let mut block = |kind: &str| {
            let begins = |line: &str| line.starts_with("---") && line.contains(kind);
            lines.by_ref().find(|line| begins(line))?;
            lines.by_ref().find(|line| !line.is_empty()).map(Secret::new)
        };
        let (jwt, seed) = (block("JWT"), block("SEED"));
        match (jwt, seed) {
            (Some(jwt), Some(seed)) if KeyPair::from_seed(seed.reveal()).is_ok() => {
                Ok(Self::Jwt { jwt, seed })
            }
            _ => {
                let problem = "holds no user's JWT and key: use what is in a .creds file";
                Err(ConfigError::new("creds", problem))
            }
        }
    }

    /// Whether there is something that must not be overheard. A JWT's key never leaves.
    pub fn is_secret(&self) -> bool {
        matches!(self, Self::Token(_) | Self::User(..))
    }

    /// The proof for one connection; the server chose `nonce` for it.
    pub fn prove(&self, nonce: &[u8]) -> Result<Auth, AuthError> {
        let mut auth = Auth::new();
        match self {
            Self::None => {}
            Self::Token(token) => auth.token = Some(token.reveal().to_owned()),
            Self::User(user, password) => {
                auth.username = Some(user.clone());
                auth.password = Some(password.reveal().to_owned());
            }
            Self::Jwt { jwt, seed } => {
                let signed = KeyPair::from_seed(seed.reveal()).and_then(|key| key.sign(nonce));
                auth.signature = Some(signed.map_err(|_| AuthError::new("the key cannot sign"))?);
                auth.jwt = Some(jwt.reveal().to_owned());
            }
        }
        Ok(auth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_creds_file_proves_by_signing() {
        let user = KeyPair::new_user();
        let file = format!(
            "-----BEGIN NATS USER JWT-----\nabc.def.ghi\n------END NATS USER JWT------\n\n\
             ************************* IMPORTANT *************************\n\
             -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
            user.seed().unwrap()
        );
        let credential = Credential::from_creds(&Secret::new(file)).unwrap();
        let auth = credential.prove(b"nonce").unwrap();
        assert_eq!(auth.jwt.as_deref(), Some("abc.def.ghi"));
        user.verify(b"nonce", &auth.signature.unwrap()).unwrap();
        assert!(!credential.is_secret());
        assert!(!format!("{credential:?}").contains("abc"), "{credential:?}");
    }

    #[test]
    fn what_is_no_creds_file_is_refused_and_not_shown() {
        for text in ["hunter2", "-----BEGIN NATS USER JWT-----\nhunter2\n-----BEGIN SEED---\nx\n"] {
            let error = Credential::from_creds(&Secret::new(text)).unwrap_err().to_string();
            assert!(error.starts_with("`creds` holds no user's JWT and key"), "{error}");
            assert!(!error.contains("hunter2"));
        }
    }
}
