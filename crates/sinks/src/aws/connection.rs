//! Region and credentials, found as the AWS SDK finds them: in the environment, in its files, and from
//! whoever hands out credentials on the machine.

use super::http::Transport;
use crate::{Secret, failure::Failure};
use aws_config::{
    BehaviorVersion, Region, SdkConfig, profile::ProfileFileCredentialsProvider,
    provider_config::ProviderConfig, retry::RetryConfig, timeout::TimeoutConfig,
};
use aws_credential_types::{
    Credentials,
    provider::{ProvideCredentials, SharedCredentialsProvider, error::CredentialsError},
};
use url::Url;

const NO_REGION: &str = "no AWS region is known: set `region`, or AWS_REGION in the environment, or \
                         `region` in the profile";

/// What is declared about how AWS is reached.
pub struct Reach {
    pub region: Option<String>,
    pub endpoint: Option<Url>,
    pub profile: Option<String>,
    /// An access key: its id and its secret.
    pub keys: Option<(String, Secret)>,
    /// To the services that items go to …
    pub services: Transport,
    /// … and to those that hand out credentials.
    pub metadata: Transport,
}

impl Reach {
    /// Finds what is not declared. Credentials are looked for when they are needed first, and again
    /// when they are about to expire.
    pub async fn find(&self) -> Result<SdkConfig, Failure> {
        let mut loader =
            aws_config::defaults(BehaviorVersion::latest()).http_client(self.metadata.clone());
        if let Some(region) = &self.region {
            loader = loader.region(Region::new(region.clone()));
        }
        if let Some(endpoint) = &self.endpoint {
            loader = loader.endpoint_url(endpoint.as_str());
        }
        if let Some(profile) = &self.profile {
            loader = loader.profile_name(profile);
        }
        let found = loader.load().await;
        let region = found.region().cloned();
        let region = region.ok_or_else(|| Failure::Broken(NO_REGION.to_owned()))?;
        let mut services = found
            .into_builder()
            .http_client(self.services.clone())
            .retry_config(RetryConfig::disabled())
            // A delivery has a deadline of its own.
            .timeout_config(TimeoutConfig::disabled());
        if let Some(declared) = self.credentials(region) {
            self.look_at(&declared).await?;
            services = services.credentials_provider(declared);
        }
        Ok(services.build())
    }

    /// Of a profile without credentials the SDK would not say which one it is.
    async fn look_at(&self, declared: &SharedCredentialsProvider) -> Result<(), Failure> {
        let Some(profile) = &self.profile else { return Ok(()) };
        match declared.provide_credentials().await {
            Err(CredentialsError::CredentialsNotLoaded(_)) => Err(Failure::Broken(format!(
                "the profile {profile} has no AWS credentials: add them to ~/.aws/credentials or \
                 ~/.aws/config, or correct `profile`"
            ))),
            // All else is said when the credentials are needed.
            _ => Ok(()),
        }
    }

    /// Credentials that are declared, if any are. The SDK would take those of the environment before
    /// those of a profile that it was given by name.
    fn credentials(&self, region: Region) -> Option<SharedCredentialsProvider> {
        if let Some((id, secret)) = &self.keys {
            let keys = Credentials::new(id, secret.reveal(), None, None, "tidegate.toml");
            return Some(SharedCredentialsProvider::new(keys));
        }
        let context = ProviderConfig::without_region()
            .with_region(Some(region))
            .with_http_client(self.metadata.clone());
        let profile = ProfileFileCredentialsProvider::builder()
            .configure(&context)
            .profile_name(self.profile.as_ref()?);
        Some(SharedCredentialsProvider::new(profile.build()))
    }
}
