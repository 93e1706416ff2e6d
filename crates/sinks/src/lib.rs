//! Sinks: systems elsewhere that items are delivered to.
//!
//! Each sink is a module behind a cargo feature of the same name, with the same files in each:
//!
//! | file | what is in it |
//! |---|---|
//! | `mod.rs` | the [`Sink`](tidegate_core::Sink): a few lines per step |
//! | `config.rs` | what a user declares, and the check of it |
//! | `request.rs` | items → request; pure |
//! | `answer.rs` | status, headers and body → outcome; pure |
//!
//! What they share is beside them: `client` is the one place that talks HTTP, `address` says where
//! it may connect to, `credential` holds secrets, `record` reads the fields of an item, `pattern`
//! names places by what an item says of itself, `line` writes an item as a line, `rounds` keeps the
//! order of keys, `status`, `reason`, `retry_after` and `hints` read answers.
//!
//! Brokers share more: `broker` is all of a sink but the protocol, which is in a `connection.rs`
//! of each; `dialer` opens their connections; `pattern` says where a message goes and `beside` what
//! travels with it. `sqs` and `sns` are both behind the feature `aws`, and share the module `aws`. `brighter`
//! lays messages out for the consumers of another library, if the `envelope` of a sink says so.
//!
//! Nothing here reads the environment: who makes a sink hands in a function that does. There are two
//! exceptions. The system's store of CA certificates is found by `SSL_CERT_FILE` and `SSL_CERT_DIR` on
//! some systems. The AWS SDK looks for its region and its credentials where it always does.
//!
//! ```
//! # #[cfg(feature = "http")] {
//! use tidegate_core::Sink;
//! use tidegate_sinks::http::{Config, Http};
//!
//! let config: Config = toml::from_str(
//!     r#"
//!     url = "https://api.example.com/v1/orders"
//!     body = "ndjson"
//!     id_field = "order_id"
//!     bearer = { env = "ORDERS_TOKEN" }
//!     "#,
//! )?;
//! let env = |name: &str| (name == "ORDERS_TOKEN").then(|| "secret".to_owned());
//! let sink = Http::new(&config, &env)?;
//! assert_eq!(sink.capabilities().max_group, 100);
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(
    not(all(
        feature = "http",
        feature = "dataverse",
        feature = "qdrant",
        feature = "kafka",
        feature = "file",
        feature = "stdout",
        feature = "nats",
        feature = "amqp",
        feature = "redis",
        feature = "aws"
    )),
    allow(dead_code, reason = "no single sink uses all that they share")
)]

mod address;
#[cfg(feature = "amqp")]
pub mod amqp;
#[cfg(feature = "aws")]
mod aws;
#[cfg(any(feature = "nats", feature = "amqp", feature = "aws"))]
mod beside;
#[cfg(feature = "brighter")]
pub mod brighter;
#[cfg(any(feature = "nats", feature = "amqp", feature = "redis", feature = "aws"))]
mod broker;
mod client;
mod config;
mod credential;
#[cfg(feature = "dataverse")]
pub mod dataverse;
#[cfg(any(feature = "nats", feature = "amqp", feature = "redis"))]
mod dialer;
#[cfg(feature = "brighter")]
mod envelope;
mod failure;
#[cfg(feature = "file")]
pub mod file;
mod hints;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "kafka")]
pub mod kafka;
#[cfg(any(feature = "file", feature = "stdout"))]
pub mod line;
#[cfg(feature = "nats")]
pub mod nats;
mod pattern;
pub mod protected;
#[cfg(feature = "qdrant")]
pub mod qdrant;
mod reason;
mod record;
#[cfg(feature = "redis")]
pub mod redis;
mod resolver;
mod retry_after;
mod rounds;
mod seconds;
#[cfg(any(feature = "nats", feature = "amqp", feature = "redis"))]
mod server;
#[cfg(feature = "aws")]
pub mod sns;
#[cfg(feature = "aws")]
pub mod sqs;
mod status;
#[cfg(feature = "stdout")]
pub mod stdout;
#[cfg(any(feature = "http", feature = "file", feature = "stdout"))]
mod time;
mod tls;

pub use address::Allowed;
pub use config::ConfigError;
pub use credential::{Env, Secret, SecretSource};
#[cfg(feature = "brighter")]
pub use envelope::Envelope;
pub use protected::Protected;

/// What the names begin with that the clients of brokers log under. Turn it off: what matters is in the
/// answers of the sinks, and at the finest level these clients show payloads and passwords.
pub const CLIENT_LOGS: [&str; 3] = ["async_nats", "aws", "lapin"];
