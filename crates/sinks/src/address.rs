//! Where a sink may connect to: public addresses, and what its config allows beyond.
//!
//! Whoever may write a config, or a record that gets into an address, must not reach the network
//! behind it: the cloud's metadata service, a database on loopback, a router. So the address that
//! is really connected to is judged, after the name is resolved.

mod ranges;

use ipnet::IpNet;
use serde::Deserialize;
use std::{fmt, net::IpAddr};
use url::{Host, Url};

/// Where a sink may connect to although it is not public: an address, a CIDR, or a host's name with
/// whatever addresses it has.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Allowed {
    /// All addresses of a network, or one.
    Network(IpNet),
    /// A host, by the name in the sink's address.
    Host(String),
}

/// The rules of one sink.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    allowed: Vec<Allowed>,
}

/// An address that may not be connected to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place} is a {kind} address: if it is meant, add it to `allow`", place = Place(host, *ip))]
pub struct Forbidden {
    host: String,
    ip: IpAddr,
    kind: &'static str,
}

impl Rules {
    pub fn new(allowed: &[Allowed]) -> Self {
        Self { allowed: allowed.to_vec() }
    }

    /// Whether `ip`, which `host` resolved to, may be connected to.
    pub fn judge(&self, host: &str, ip: IpAddr) -> Result<(), Forbidden> {
        match ranges::kind(ip) {
            Some(kind) if !self.allow(host, ip) => {
                Err(Forbidden { host: host.to_owned(), ip, kind })
            }
            _ => Ok(()),
        }
    }

    /// The same for an address that is written as one: it is never resolved.
    pub fn judge_literal(&self, url: &Url) -> Result<(), Forbidden> {
        match url.host() {
            Some(Host::Ipv4(ip)) => self.judge(&ip.to_string(), ip.into()),
            Some(Host::Ipv6(ip)) => self.judge(&ip.to_string(), ip.into()),
            Some(Host::Domain(_)) | None => Ok(()),
        }
    }

    /// Whether the config names this host itself, or the address that it is.
    pub fn name(&self, url: &Url) -> bool {
        match url.host() {
            Some(Host::Ipv4(ip)) => self.allow("", ip.into()),
            Some(Host::Ipv6(ip)) => self.allow("", ip.into()),
            Some(Host::Domain(name)) => self.allow_host(name),
            None => false,
        }
    }

    fn allow(&self, host: &str, ip: IpAddr) -> bool {
        let meant = ranges::meant(ip);
        let names = |allowed: &Allowed| match allowed {
            Allowed::Network(network) => network.contains(&ip) || network.contains(&meant),
            Allowed::Host(_) => false,
        };
        self.allowed.iter().any(names) || self.allow_host(host)
    }

    fn allow_host(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.');
        self.allowed.iter().any(|allowed| matches!(allowed, Allowed::Host(name) if name == host))
    }
}

impl Allowed {
    fn one(ip: IpAddr) -> Self {
        Self::Network(ranges::meant(ip).into())
    }
}

impl TryFrom<String> for Allowed {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if let Ok(network) = text.parse() {
            return Ok(Self::Network(network));
        }
        if let Ok(ip) = text.parse() {
            return Ok(Self::one(ip));
        }
        match Host::parse(&text) {
            Ok(Host::Domain(name)) => Ok(Self::Host(name.trim_end_matches('.').to_owned())),
            Ok(Host::Ipv4(ip)) => Ok(Self::one(ip.into())),
            Ok(Host::Ipv6(ip)) => Ok(Self::one(ip.into())),
            Err(_) => Err(format!(
                "`{text}` allows nothing: use an address, a CIDR such as 10.0.0.0/8, or a host's \
                 name without a port"
            )),
        }
    }
}

/// `localhost (127.0.0.1)`, or only the address if that is what was written.
struct Place<'a>(&'a str, IpAddr);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(host, ip) = self;
        if *host == ip.to_string() { write!(f, "{ip}") } else { write!(f, "{host} ({ip})") }
    }
}

#[cfg(test)]
mod tests;
