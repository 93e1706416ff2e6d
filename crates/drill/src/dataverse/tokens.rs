//! Which tokens are good, for whom and how long. Pure: time is an argument.

use std::{collections::HashMap, time::Duration};
use twox_hash::XxHash3_128;

/// Most tokens remembered. A client that asks for one per request loses its oldest ones.
const MAX_TOKENS: usize = 10_000;

/// The tokens issued.
#[derive(Debug, Default)]
pub struct Tokens {
    live: HashMap<String, Token>,
    issued: u64,
}

#[derive(Debug)]
struct Token {
    user: String,
    expires: Duration,
}

impl Tokens {
    /// A new token for `user`. Others stay good.
    pub fn issue(&mut self, user: &str, lifetime: Duration, now: Duration) -> String {
        self.live.retain(|_, token| now < token.expires);
        if self.live.len() >= MAX_TOKENS {
            let oldest = self.live.iter().min_by_key(|(_, token)| token.expires);
            let oldest = oldest.map(|(text, _)| text.clone());
            oldest.map(|text| self.live.remove(&text));
        }
        self.issued += 1;
        // Unlike each other is all that tokens on loopback need to be.
        let text = format!("{:032x}", XxHash3_128::oneshot_with_seed(self.issued, user.as_bytes()));
        let token = Token { user: user.to_owned(), expires: now + lifetime };
        self.live.insert(text.clone(), token);
        text
    }

    /// Whose token it is, while it is good.
    pub fn user(&self, token: &str, now: Duration) -> Option<String> {
        self.live.get(token).filter(|token| now < token.expires).map(|token| token.user.clone())
    }
}
