//! Services, sinks and items to test with.

use tidegate_core::sink::{Answer, Delivery, Item, Outcome, Sink, Verdict};
use tidegate_drill::{Service, Spec};

pub fn start(spec: Spec) -> Service {
    Service::start(spec, "127.0.0.1:0".parse().unwrap()).unwrap()
}

/// The environment of the tests.
pub fn env(name: &str) -> Option<String> {
    name.strip_prefix("SECRET_").map(|_| format!("value of {name}"))
}

/// An HTTP sink to this address. Loopback is allowed.
#[cfg(feature = "http")]
pub fn http(url: &str, rest: &str) -> tidegate_sinks::http::Http {
    try_http(url, &format!("allow = ['127.0.0.1']\n{rest}")).unwrap()
}

/// An HTTP sink to this address, with nothing but `rest`.
#[cfg(feature = "http")]
pub fn try_http(url: &str, rest: &str) -> Result<tidegate_sinks::http::Http, String> {
    let config = toml::from_str(&format!("url = '{url}'\n{rest}")).map_err(|it| it.to_string())?;
    tidegate_sinks::http::Http::new(&config, &env).map_err(|error| error.to_string())
}

/// Sends payloads over the first connection. Their ids are their places.
pub async fn deliver(sink: &dyn Sink, payloads: &[&str]) -> Answer {
    deliver_over(sink, 0, payloads).await
}

pub async fn deliver_over(sink: &dyn Sink, connection: usize, payloads: &[&str]) -> Answer {
    let ids: Vec<String> = (0..payloads.len()).map(|place| format!("item-{place}")).collect();
    let items = ids.iter().zip(payloads).map(|(id, payload)| Item::record(id, payload));
    let items: Vec<_> = items.collect();
    sink.deliver(Delivery { connection, items: &items }).await
}

pub fn done(items: usize) -> Outcome {
    Outcome::Answered(vec![Verdict::Done; items])
}
