//! Addresses of servers that speak a protocol of their own.

use crate::ConfigError;
use std::fmt;
use url::{Host, Url};

/// A protocol, with and without TLS.
#[derive(Clone, Copy, Debug)]
pub struct Scheme {
    pub plain: &'static str,
    pub secure: &'static str,
    /// Where servers listen if the address does not say.
    pub port: u16,
    pub secure_port: u16,
}

/// Where a server is.
#[derive(Clone, Debug)]
pub struct Server {
    pub scheme: Scheme,
    /// Whether to speak TLS.
    pub secure: bool,
    /// As the rules for addresses want it: only its host counts.
    pub url: Url,
    pub port: u16,
    /// What is behind the host, without the first `/`; still encoded.
    pub path: Option<String>,
}

impl Server {
    /// The server that an address names.
    pub fn parse(key: &str, text: &str, scheme: Scheme) -> Result<Self, ConfigError> {
        // The text itself stays out of messages: it may hold a password.
        let refused = |problem: String| ConfigError::new(key, problem);
        let Scheme { plain, secure, .. } = scheme;
        let url = Url::parse(text.trim()).map_err(|error| {
            refused(format!("is no address ({error}): use {plain}://host:{}", scheme.port))
        })?;
        if url.scheme() != plain && url.scheme() != secure {
            let problem = format!("begins with `{}:`: use {plain}:// or {secure}://", url.scheme());
            return Err(refused(problem));
        }
        if !url.username().is_empty() || url.password().is_some() {
            let problem = "holds a user or a password: remove them and use `user` and `password`";
            return Err(refused(problem.to_owned()));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(refused("has a `?` or a `#`: remove what is behind it".to_owned()));
        }
        let is_secure = url.scheme() == secure;
        let port = if is_secure { scheme.secure_port } else { scheme.port };
        let path = url.path().strip_prefix('/').filter(|path| !path.is_empty());
        let host = url.host_str().filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| refused(format!("has no host: use {plain}://host")))?;
        let meant = Url::parse(&format!("https://{host}/"))
            .map_err(|error| refused(format!("has no host ({error})")))?;
        Ok(Self {
            scheme,
            secure: is_secure,
            url: meant,
            port: url.port().unwrap_or(port),
            path: path.map(str::to_owned),
        })
    }

    /// The host as sockets want it: an IPv6 address without brackets.
    pub fn host(&self) -> String {
        match self.url.host() {
            Some(Host::Ipv6(ip)) => ip.to_string(),
            _ => self.url.host_str().unwrap_or_default().to_owned(),
        }
    }
}

/// `host:port`, for messages.
impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.url.host_str().unwrap_or_default(), self.port)
    }
}

/// Whether any of them is spoken to by TLS.
pub fn any_secure(servers: &[Server]) -> bool {
    servers.iter().any(|server| server.secure)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NATS: Scheme = Scheme { plain: "nats", secure: "tls", port: 4222, secure_port: 4222 };

    fn parsed(text: &str) -> Result<String, String> {
        let server = Server::parse("url", text, NATS).map_err(|error| error.to_string())?;
        Ok(format!("{} {server} {:?}", server.secure, server.path))
    }

    #[test]
    fn an_address_has_a_scheme_a_host_and_perhaps_a_port() {
        assert_eq!(parsed("nats://example.com").unwrap(), "false example.com:4222 None");
        assert_eq!(parsed("tls://example.com:80/").unwrap(), "true example.com:80 None");
        assert_eq!(parsed("nats://[::1]:1/a%2Fb").unwrap(), "false [::1]:1 Some(\"a%2Fb\")");
        // What hides an address is seen through, so that the rules see it too.
        assert_eq!(parsed("nats://0x7f.1").unwrap(), "false 127.0.0.1:4222 None");
    }

    #[test]
    fn what_does_not_belong_is_refused_without_being_shown() {
        let refused = |text: &str| parsed(text).unwrap_err();
        assert_eq!(refused("http://h"), "`url` begins with `http:`: use nats:// or tls://");
        let secret = refused("nats://me:hunter2@h");
        assert!(secret.contains("use `user` and `password`"), "{secret}");
        assert!(!secret.contains("hunter2"), "{secret}");
        assert!(refused("example.com").starts_with("`url` is no address"));
        assert!(refused("nats://h?x=1").contains("remove what is behind it"));
        assert!(refused("nats://").contains("has no host"));
    }
}
