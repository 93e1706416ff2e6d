//! Signatures after Standard Webhooks: who knows the secret can tell that a message is ours, and
//! that it is new.

use crate::{ConfigError, Secret};
use base64::{Engine, engine::general_purpose::STANDARD};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use ring::hmac;
use std::{
    fmt,
    time::{Duration, SystemTime},
};

/// The headers that a signature takes.
pub const ID: HeaderName = HeaderName::from_static("webhook-id");
pub const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
pub const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// What secrets usually begin with; it is no part of the key.
const PREFIX: &str = "whsec_";

/// Signs messages with one key, or with the old and the new one while they change.
#[derive(Clone)]
pub struct Signer {
    keys: Vec<hmac::Key>,
}

impl Signer {
    /// `secret` holds keys in base64, with spaces between them.
    pub fn new(secret: &Secret) -> Result<Self, ConfigError> {
        let keys = secret.reveal().split_whitespace().map(|text| {
            let decoded = STANDARD.decode(text.strip_prefix(PREFIX).unwrap_or(text));
            let key = decoded.ok().filter(|key| !key.is_empty()).ok_or_else(|| {
                let problem = "is no secret of Standard Webhooks: use base64, as in whsec_…";
                ConfigError::new("signing", problem)
            })?;
            Ok(hmac::Key::new(hmac::HMAC_SHA256, &key))
        });
        let keys: Vec<_> = keys.collect::<Result<_, ConfigError>>()?;
        if keys.is_empty() {
            return Err(ConfigError::new("signing", "holds nothing but spaces"));
        }
        Ok(Self { keys })
    }

    /// The headers that sign a body, or why there are none.
    pub fn sign(&self, id: &str, now: SystemTime, body: &[u8]) -> Result<HeaderMap, String> {
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let seconds = since.as_secs();
        let signatures: Vec<_> = self.keys.iter().map(|key| one(key, id, seconds, body)).collect();
        let value = |text: &str| {
            let unfit = |_| "the item's id cannot be sent in a header".to_owned();
            HeaderValue::from_str(text).map_err(unfit)
        };
        Ok(HeaderMap::from_iter([
            (ID, value(id)?),
            (TIMESTAMP, HeaderValue::from(seconds)),
            (SIGNATURE, value(&signatures.join(" "))?),
        ]))
    }
}

fn one(key: &hmac::Key, id: &str, seconds: u64, body: &[u8]) -> String {
    let mut context = hmac::Context::with_key(key);
    context.update(format!("{id}.{seconds}.").as_bytes());
    context.update(body);
    format!("v1,{}", STANDARD.encode(context.sign()))
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
    const BODY: &[u8] = br#"{"email":"test@example.com","username":"test_user"}"#;

    fn sign(secret: &str) -> HeaderMap {
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(1_649_367_553_900);
        let signer = Signer::new(&Secret::new(secret)).unwrap();
        signer.sign("msg_27UH4WbU6Z5A5EzD8u03UvzRbpk", now, BODY).unwrap()
    }

    #[test]
    fn signatures_are_those_of_the_reference_libraries() {
        let expected = "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=";
        let headers = sign(SECRET);
        assert_eq!(headers[SIGNATURE], expected);
        assert_eq!(headers[TIMESTAMP], "1649367553");
        assert_eq!(headers[ID], "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk");
        assert_eq!(sign(&SECRET[6..])[SIGNATURE], expected);
    }

    #[test]
    fn while_secrets_change_both_sign() {
        let headers = sign(&format!("whsec_bmV3IG9uZQ==  {SECRET}"));
        let signatures: Vec<_> = headers[SIGNATURE].to_str().unwrap().split(' ').collect();
        assert_eq!(signatures.len(), 2);
        assert_ne!(signatures[0], signatures[1]);
        assert_eq!(signatures[1], "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=");
    }

    #[test]
    fn what_is_no_secret_is_refused_and_does_not_show() {
        for text in ["hunter2!", "whsec_", " ", "whsec_C2FV hunter"] {
            let error = Signer::new(&Secret::new(text)).unwrap_err().to_string();
            assert!(error.starts_with("`signing` ") && !error.contains("hunter"), "{error}");
        }
        assert_eq!(format!("{:?}", Signer::new(&Secret::new(SECRET)).unwrap()), "***");
    }

    #[test]
    fn an_id_that_no_header_carries_is_at_fault() {
        let signer = Signer::new(&Secret::new(SECRET)).unwrap();
        assert!(signer.sign("a\nb", SystemTime::UNIX_EPOCH, b"").is_err());
    }
}
