//! The one place that talks HTTP.
//!
//! No redirects, no proxies, no cookies (Dataverse's affinity cookie would pin all work to one of
//! its web servers), nothing sent twice.

use crate::{
    ConfigError,
    address::{Allowed, Rules},
    failure::Failure,
    resolver::Guarded,
    tls,
};
use reqwest::{Method, Request, RequestBuilder, header::HeaderMap, redirect, retry};
use std::{path::Path, sync::Arc, time::Duration};
use tokio::time::timeout;
use url::Url;

/// No answer is read beyond this.
const MAX_BODY: usize = 1 << 20;

/// Until a connection stands, or half of the request's time if that is less. A service that takes
/// longer is absent; without this, it would seem that something may have been delivered.
pub const CONNECT: Duration = Duration::from_secs(10);

/// Connections kept for the next request: more than a pacer is likely to have in flight.
const IDLE_CONNECTIONS: usize = 256;

/// Less than what servers and load balancers wait before they hang up (60 s and more).
const IDLE: Duration = Duration::from_secs(50);

/// Sends requests under one sink's rules.
#[derive(Debug)]
pub struct Client {
    http: reqwest::Client,
    rules: Arc<Rules>,
    timeout: Duration,
}

/// What a sink's config says about its client.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// Whether it will speak TLS.
    pub secure: bool,
    pub timeout: Duration,
    pub ca_file: Option<&'a Path>,
    pub allow: &'a [Allowed],
}

/// What came back.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    /// Whether the body was longer than what is read of it.
    pub cut: bool,
}

impl Client {
    pub fn new(settings: Settings<'_>) -> Result<Self, ConfigError> {
        let rules = Arc::new(Rules::new(settings.allow));
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls::client(settings.secure, settings.ca_file)?.client)
            .dns_resolver(Guarded(Arc::clone(&rules)))
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .referer(false)
            .no_proxy()
            .tcp_nodelay(true)
            .connect_timeout(CONNECT.min(settings.timeout / 2))
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .pool_idle_timeout(IDLE)
            .user_agent(concat!("tidegate/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| ConfigError::new("url", format!("has no client: {error}")))?;
        Ok(Self { http, rules, timeout: settings.timeout })
    }

    /// Begins a request.
    pub fn request(&self, method: Method, url: Url) -> RequestBuilder {
        self.http.request(method, url)
    }

    /// Whether the rules let it connect to an address that needs no resolving.
    pub fn judge(&self, key: &str, url: &Url) -> Result<(), ConfigError> {
        self.rules
            .judge_literal(url)
            .map_err(|error| ConfigError::new(key, format!("is out of bounds: {error}")))
    }

    /// The same for secrets on every request: in the clear they go only where the config names the
    /// host.
    pub fn judge_secure(&self, key: &str, url: &Url) -> Result<(), ConfigError> {
        if url.scheme() != "https" && !self.rules.name(url) {
            let problem = "sends secrets in the clear: use https://, or name the host in `allow`";
            return Err(ConfigError::new(key, problem));
        }
        self.judge(key, url)
    }

    /// How long a request may take.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Sends a request once. Whatever status comes back is a reply.
    pub async fn send(&self, request: RequestBuilder) -> Result<Reply, Failure> {
        let request = request.build().map_err(|error| Failure::of(&error, "it"))?;
        self.rules.judge_literal(request.url())?;
        let host = request.url().host_str().unwrap_or_default().to_owned();
        match timeout(self.timeout, self.exchange(request)).await {
            Ok(reply) => reply.map_err(|error| Failure::of(&error, &host)),
            Err(_) => Err(Failure::TimedOut),
        }
    }

    async fn exchange(&self, request: Request) -> Result<Reply, reqwest::Error> {
        let mut response = self.http.execute(request).await?;
        let mut reply = Reply {
            status: response.status().as_u16(),
            headers: std::mem::take(response.headers_mut()),
            ..Reply::default()
        };
        while let Some(chunk) = response.chunk().await? {
            let room = MAX_BODY - reply.body.len();
            reply.body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if chunk.len() > room {
                reply.cut = true;
                break;
            }
        }
        Ok(reply)
    }
}
