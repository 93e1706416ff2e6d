//! The producer: one for all calls, and a new one when it has failed for good.

use crate::{ConfigError, reason::clean};
use rdkafka::{
    ClientConfig, ClientContext,
    error::{KafkaError, RDKafkaErrorCode},
    producer::{FutureProducer, Producer},
};
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// A producer, and what troubles it.
#[derive(Clone)]
pub struct Sender {
    pub producer: FutureProducer<Watch>,
    pub watch: Watch,
}

/// What troubles a producer. Messages that wait for a broker only time out; why is told here.
#[derive(Clone, Default)]
pub struct Watch {
    trouble: Arc<Mutex<Option<Trouble>>>,
}

/// What came back from the brokers, or did not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    pub code: RDKafkaErrorCode,
    pub text: String,
}

/// The producer of a sink.
pub struct Producers {
    config: ClientConfig,
    current: Mutex<Sender>,
}

impl Producers {
    /// Starts a producer. It looks for brokers by itself, whether there are any now or not.
    pub fn start(config: ClientConfig) -> Result<Self, ConfigError> {
        let current = Mutex::new(start(&config).map_err(refused)?);
        Ok(Self { config, current })
    }

    /// The producer of today.
    pub fn current(&self) -> Sender {
        lock(&self.current).clone()
    }

    /// Starts a new producer if this one has failed for good, and says why it has. What it still
    /// had to send has failed with it.
    pub fn replace_if_failed(&self, sender: &Sender) -> Option<String> {
        let (code, text) = sender.producer.client().fatal_error()?;
        let mut current = lock(&self.current);
        // Another call may have been first.
        if current.producer.client().fatal_error().is_some()
            && let Ok(new) = start(&self.config)
        {
            let failed = std::mem::replace(&mut *current, new);
            // The end of a producer waits for its threads.
            std::thread::spawn(move || drop(failed));
        }
        Some(format!("the producer failed and starts anew: {} ({code:?})", clean(&text)))
    }
}

impl Watch {
    /// What troubles the producer since it last delivered.
    pub fn trouble(&self) -> Option<Trouble> {
        lock(&self.trouble).clone()
    }

    /// A broker took a message.
    pub fn clear(&self) {
        *lock(&self.trouble) = None;
    }
}

impl ClientContext for Watch {
    fn error(&self, error: KafkaError, reason: &str) {
        let code = error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Unknown);
        *lock(&self.trouble) = Some(Trouble { code, text: clean(reason) });
    }
}

fn start(config: &ClientConfig) -> Result<Sender, KafkaError> {
    let watch = Watch::default();
    let producer = config.create_with_context(watch.clone())?;
    Ok(Sender { producer, watch })
}

/// What librdkafka has against the config. Values stay out of it: they may be secrets.
fn refused(error: KafkaError) -> ConfigError {
    match error {
        KafkaError::ClientConfig(_, _, name, _) => {
            let problem =
                "is not known, or has a value that is not: see librdkafka's CONFIGURATION";
            ConfigError::new(format!("settings.{name}"), problem)
        }
        KafkaError::ClientCreation(text) => {
            ConfigError::new("settings", format!("make no producer: {}", clean(&text)))
        }
        _ => ConfigError::new("settings", "make no producer"),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What it holds is replaced as a whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Producers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Producers")
    }
}
