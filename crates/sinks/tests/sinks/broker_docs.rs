//! What the pages about brokers show can be used as it stands.

use serde::de::DeserializeOwned;
use std::path::Path;

/// The sinks that a page declares, each without its kind.
fn shown<C: DeserializeOwned>(kind: &str) -> Vec<C> {
    let page = format!("{}/../../docs/sinks/{kind}.md", env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(Path::new(&page)).unwrap();
    let blocks = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let sinks = blocks.flat_map(|block| {
        let table: toml::Table = toml::from_str(block).unwrap();
        table["sinks"].as_table().unwrap().values().cloned().collect::<Vec<_>>()
    });
    let sinks = sinks.map(|mut sink| {
        let declared = sink.as_table_mut().unwrap().remove("kind");
        assert_eq!(declared, Some(kind.into()));
        sink.try_into().unwrap()
    });
    let sinks: Vec<C> = sinks.collect();
    assert!(!sinks.is_empty());
    sinks
}

#[cfg(any(feature = "nats", feature = "redis", feature = "aws"))]
fn env(_: &str) -> Option<String> {
    Some("secret".to_owned())
}

#[cfg(feature = "nats")]
#[test]
fn nats() {
    for config in shown("nats") {
        tidegate_sinks::nats::Nats::new(&config, &env).unwrap();
    }
}

#[cfg(feature = "redis")]
#[test]
fn redis() {
    for config in shown("redis") {
        tidegate_sinks::redis::Redis::new(&config, &env).unwrap();
    }
}

#[cfg(feature = "aws")]
#[test]
fn sqs() {
    for config in shown("sqs") {
        tidegate_sinks::sqs::Sqs::new(&config, &env).unwrap();
    }
}

#[cfg(feature = "aws")]
#[test]
fn sns() {
    for config in shown("sns") {
        tidegate_sinks::sns::Sns::new(&config, &env).unwrap();
    }
}

#[cfg(feature = "amqp")]
#[test]
fn amqp() {
    use tidegate_sinks::{
        SecretSource,
        amqp::{Amqp, Config},
    };
    for mut config in shown::<Config>("amqp") {
        // One of them is in a file, which is not here.
        config.password = config.password.map(|_| SecretSource::Env("PASSWORD".to_owned()));
        Amqp::new(&config, &|_| Some("secret".to_owned())).unwrap();
    }
}
