//! How AWS is reached, as a user declares it.

use super::{connection::Reach, http::Transport};
use crate::{
    Allowed, ConfigError, Env, Secret, SecretSource,
    client::{Client, Settings},
    config::service_url,
};
use std::{path::Path, time::Duration};

/// Most entries in a call of either service.
pub const MAX_GROUP: usize = 10;

/// Where credentials are handed out: to virtual machines, to containers of ECS and of EKS, and by
/// agents on the same machine.
const METADATA: [&str; 6] =
    ["169.254.169.254", "169.254.170.2", "169.254.170.23", "fd00:ec2::254", "fd00:ec2::23", "::1"];

/// All of loopback, where agents listen.
const LOOPBACK: &str = "127.0.0.0/8";

/// What the configs of all sinks to AWS say about how it is reached.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    pub region: Option<&'a str>,
    /// The region that a queue's URL or a topic's ARN names.
    pub region_of_place: Option<&'a str>,
    pub endpoint: Option<&'a str>,
    pub profile: Option<&'a str>,
    pub access_key_id: Option<&'a str>,
    pub secret_access_key: Option<&'a SecretSource>,
    pub timeout: Duration,
    pub ca_file: Option<&'a Path>,
    pub allow: &'a [Allowed],
}

impl Access<'_> {
    /// Checks what is declared. Nothing is looked for yet.
    pub fn reach(&self, env: &Env<'_>) -> Result<Reach, ConfigError> {
        let endpoint = self.endpoint.map(|text| service_url("endpoint", text)).transpose()?;
        let plain = endpoint.as_ref().is_some_and(|endpoint| endpoint.scheme() == "http");
        let services = self.client(!plain, self.allow)?;
        if let Some(endpoint) = &endpoint {
            services.judge_secure("endpoint", endpoint)?;
        }
        let metadata = METADATA.into_iter().chain([LOOPBACK]).map(str::to_owned);
        let metadata = metadata.filter_map(|address| Allowed::try_from(address).ok());
        let metadata: Vec<Allowed> = metadata.chain(self.allow.iter().cloned()).collect();
        let keys = self.keys(env)?;
        // With an access key nothing is looked for: a machine without any CA must be able to do that.
        let metadata = self.client(keys.is_none() || !plain, &metadata)?;
        Ok(Reach {
            region: self.region()?,
            endpoint,
            profile: self.profile.map(str::to_owned),
            keys,
            services: Transport::to_service(services),
            metadata: Transport::to_metadata(metadata),
        })
    }

    fn client(&self, secure: bool, allow: &[Allowed]) -> Result<Client, ConfigError> {
        let (timeout, ca_file) = (self.timeout, self.ca_file);
        Client::new(Settings { secure, timeout, ca_file, allow })
    }

    /// A queue or a topic is in the region that its name says, and nowhere else.
    fn region(&self) -> Result<Option<String>, ConfigError> {
        match (self.region, self.region_of_place) {
            (Some(""), _) => {
                Err(ConfigError::new("region", "is empty: name one, or remove the key"))
            }
            (Some(declared), Some(named)) if declared != named => {
                let problem = format!("is {declared}, but messages go to {named}: remove the key");
                Err(ConfigError::new("region", problem))
            }
            (declared, named) => Ok(declared.or(named).map(str::to_owned)),
        }
    }

    /// An access key, if the config has one.
    fn keys(&self, env: &Env<'_>) -> Result<Option<(String, Secret)>, ConfigError> {
        let missing = |key: &str, other: &str| {
            Err(ConfigError::new(key, format!("is missing: `{other}` needs it")))
        };
        match (self.access_key_id, self.secret_access_key) {
            (None, None) => Ok(None),
            (Some(_), None) => missing("secret_access_key", "access_key_id"),
            (None, Some(_)) => missing("access_key_id", "secret_access_key"),
            (Some(_), Some(_)) if self.profile.is_some() => {
                let problem = "stands beside `access_key_id`: remove one of them";
                Err(ConfigError::new("profile", problem))
            }
            (Some(id), Some(secret)) => {
                Ok(Some((id.to_owned(), secret.resolve("secret_access_key", env)?)))
            }
        }
    }
}
