//! Resolving names to addresses that may be connected to.

use crate::address::Rules;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::{error::Error, net::SocketAddr, sync::Arc};
use tokio::net::lookup_host;

/// The system's resolver behind the rules: what it does not return is not connected to.
pub struct Guarded(pub Arc<Rules>);

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let rules = Arc::clone(&self.0);
        Box::pin(async move {
            // The port is the client's to fill in.
            let found = lookup_host((name.as_str(), 0)).await?;
            let permitted = permitted(&rules, name.as_str(), found)?;
            Ok(Box::new(permitted.into_iter()) as Addrs)
        })
    }
}

/// The addresses of a host that may be connected to.
#[cfg(any(feature = "nats", feature = "amqp", feature = "redis"))]
pub async fn resolve(
    rules: &Rules,
    host: &str,
    port: u16,
) -> Result<Vec<SocketAddr>, Box<dyn Error + Send + Sync>> {
    permitted(rules, host, lookup_host((host, port)).await?)
}

/// Fails only if there is nothing left: a name may have a private address beside its public one.
fn permitted(
    rules: &Rules,
    host: &str,
    found: impl Iterator<Item = SocketAddr>,
) -> Result<Vec<SocketAddr>, Box<dyn Error + Send + Sync>> {
    let (mut permitted, mut forbidden) = (Vec::new(), None);
    for address in found {
        match rules.judge(host, address.ip()) {
            Ok(()) => permitted.push(address),
            Err(error) => forbidden = Some(error),
        }
    }
    match forbidden {
        Some(error) if permitted.is_empty() => Err(error.into()),
        _ => Ok(permitted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(addresses: &[&str]) -> Result<usize, String> {
        let found = addresses.iter().map(|ip| SocketAddr::new(ip.parse().unwrap(), 0));
        permitted(&Rules::default(), "example.com", found)
            .map(|permitted| permitted.len())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn forbidden_addresses_are_left_out_and_named_if_nothing_is_left() {
        assert_eq!(resolved(&["93.184.216.34", "10.0.0.1", "::1"]), Ok(1));
        let error = resolved(&["10.0.0.1"]).unwrap_err();
        assert!(error.starts_with("example.com (10.0.0.1) is a private address"), "{error}");
        assert_eq!(resolved(&[]), Ok(0));
    }
}
