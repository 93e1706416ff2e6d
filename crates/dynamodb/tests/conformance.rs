//! The cases that every outbox must pass, as far as this one's capabilities go: against a real server, whose indexes do
//! not lag. Each case has tables of its own.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::{Credentials, provider::SharedCredentialsProvider};
use tidegate_conformance::{FreshOutbox, outbox_conformance};
use tidegate_core::Migrate;
use tidegate_dynamodb::DynamoDb;

async fn fresh() -> FreshOutbox {
    let server = std::env::var("TIDEGATE_TEST_DYNAMODB").expect("run by cargo xtask test");
    let endpoint = server.replace(':', "%3A").replace('/', "%2F");
    let table = format!("conformance_{:016x}", rand::random::<u64>());
    let address = format!("dynamodb://{table}?endpoint={endpoint}&min_age=0ms");
    let open = move || DynamoDb::configured(&address, config()).unwrap();
    open().migrate().await.unwrap();
    FreshOutbox::new(open)
}

fn config() -> SdkConfig {
    let credentials = Credentials::new("test", "test", None, None, "test");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-central-1"))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .build()
}

outbox_conformance!(fresh);
