//! A user's token: kept, renewed before it expires, one renewal at a time.

mod cache;

use super::config::User;
use crate::{
    ConfigError, Env, Secret,
    client::{Client, Reply},
    failure::Failure,
    reason,
};
use cache::{Cache, Found};
use reqwest::{Method, header::CONTENT_TYPE};
use serde::Deserialize;
use serde_json::Value;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::time::timeout;
use url::{Url, form_urlencoded::Serializer};

pub use cache::Token;

/// The tokens of one user.
#[derive(Debug)]
pub struct Tokens {
    /// Who.
    pub user: String,
    client_id: String,
    client_secret: Secret,
    url: Url,
    scope: String,
    cache: Mutex<Cache>,
    renewal: tokio::sync::Mutex<()>,
}

impl Tokens {
    /// None yet. `url` gives them, `service` takes them.
    pub fn new(user: &User, url: Url, service: &Url, env: &Env<'_>) -> Result<Self, ConfigError> {
        let key = format!("users.{}.client_secret", user.name);
        Ok(Self {
            user: user.name.clone(),
            client_id: user.client_id.clone(),
            client_secret: user.client_secret.resolve(&key, env)?,
            url,
            scope: format!("{}/.default", service.origin().ascii_serialization()),
            cache: Mutex::default(),
            renewal: tokio::sync::Mutex::default(),
        })
    }

    /// A token that is good for now.
    pub async fn get(&self, client: &Client) -> Result<Arc<Token>, Failure> {
        let asked = Instant::now();
        let found = self.cache().find(asked);
        match found {
            Found::Fresh(token) => Ok(token),
            Found::Due(token) => Ok(self.renew_ahead(client, token).await),
            Found::Nothing => self.wait(client, asked).await,
        }
    }

    /// The service did not accept the token. It is not used again; whether a new one may help is in
    /// the failure.
    pub fn refused(&self, token: &Arc<Token>, reply: &Reply) -> Failure {
        let reason = reason::of(reply.status, &reply.body);
        if self.cache().refuse(token) {
            return Failure::Broken(format!(
                "user `{}` is refused, with a new token as well: {reason}",
                self.user
            ));
        }
        Failure::Unavailable(format!("the token of user `{}` is refused: {reason}", self.user))
    }

    /// While the old token is good, only one request waits for the new one, and none fails for it.
    async fn renew_ahead(&self, client: &Client, old: Arc<Token>) -> Arc<Token> {
        match self.renewal.try_lock() {
            Ok(_renewing) => self.renew(client).await.unwrap_or(old),
            Err(_) => old,
        }
    }

    async fn wait(&self, client: &Client, asked: Instant) -> Result<Arc<Token>, Failure> {
        let renewing = timeout(client.timeout(), self.renewal.lock()).await;
        let _renewing = renewing.map_err(|_| self.late())?;
        // Who had the lock before has done it for all who waited.
        let settled = self.cache().settled_since(asked, Instant::now());
        match settled {
            Some(result) => result,
            None => self.renew(client).await,
        }
    }

    async fn renew(&self, client: &Client) -> Result<Arc<Token>, Failure> {
        // Before the request: a token is younger than it seems, never older.
        let begun = Instant::now();
        let issued = self.ask(client).await;
        self.cache().settle(issued, begun, Instant::now())
    }

    async fn ask(&self, client: &Client) -> Result<(Secret, Duration), Failure> {
        let form = Serializer::new(String::new())
            .append_pair("grant_type", "client_credentials")
            .append_pair("client_id", &self.client_id)
            .append_pair("client_secret", self.client_secret.reveal())
            .append_pair("scope", &self.scope)
            .finish();
        let request = client
            .request(Method::POST, self.url.clone())
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(form);
        match client.send(request).await {
            Ok(reply) => issued(&self.user, &reply),
            // Nothing was delivered, which a time-out would leave open.
            Err(Failure::TimedOut) => Err(self.late()),
            Err(failure) => Err(failure),
        }
    }

    fn late(&self) -> Failure {
        Failure::Unavailable(format!("there is no token for user `{}` in time", self.user))
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A token and how long it is good for.
fn issued(user: &str, reply: &Reply) -> Result<(Secret, Duration), Failure> {
    #[derive(Deserialize)]
    struct Issued {
        access_token: String,
        expires_in: Value,
    }
    let body: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    let reason = || match body["error_description"].as_str() {
        Some(text) => reason::of(reply.status, text.as_bytes()),
        None => reason::of(reply.status, &reply.body),
    };
    match reply.status {
        200 => {
            // Never the body: it holds the token.
            let unreadable = || format!("the answer to user `{user}` holds no token");
            let issued =
                Issued::deserialize(&body).map_err(|_| Failure::Unavailable(unreadable()))?;
            // Some versions write the number as text.
            let text = issued.expires_in.as_str().and_then(|text| text.parse().ok());
            let seconds = issued.expires_in.as_u64().or(text).unwrap_or_default();
            Ok((Secret::new(issued.access_token), Duration::from_secs(seconds)))
        }
        400 | 401 | 403 => {
            let problem =
                format!("the client id or secret of user `{user}` is refused: {}", reason());
            Err(Failure::Broken(problem))
        }
        300..=399 | 404 | 405 | 410 => {
            let problem = format!("check `tenant`, or `token_url` if there is one: {}", reason());
            Err(Failure::Broken(problem))
        }
        _ => Err(Failure::Unavailable(format!("no token for user `{user}`: {}", reason()))),
    }
}

#[cfg(test)]
mod tests;
