//! What is declared: how the service behaves and what it allows.

mod check;
mod limit;
mod seconds;

#[cfg(test)]
mod tests;

pub use check::InvalidSpec;
pub use limit::{Budget, BudgetKind, Concurrency, Hint, Knee, Rate};

use serde::Deserialize;
use std::{collections::BTreeMap, time::Duration};

/// How the service behaves. The default answers at once and forbids nothing.
///
/// In files, durations are numbers of seconds. All limits hold per credential: the value of the
/// `Authorization` header, the user behind a token, or "anonymous".
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Spec {
    /// Execution time of a request that is alone in flight.
    #[serde(with = "seconds")]
    pub delay: Duration,
    /// Execution time that each record of a request adds.
    #[serde(with = "seconds")]
    pub delay_per_record: Duration,
    /// Share of the execution time that is added, times an exponential with mean 1.
    pub jitter: f64,
    /// Where all randomness comes from.
    pub seed: u64,
    /// Share of the execution time that each request in flight beyond one adds.
    pub scale: f64,
    /// Where execution times begin to grow exponentially.
    pub knee: Option<Knee>,
    /// How many requests may be in flight.
    pub concurrency: Option<Concurrency>,
    /// How many requests may arrive in any one second.
    pub rate: Option<Rate>,
    /// What may be used in sliding windows.
    pub budgets: Vec<Budget>,
    /// Sent with each 429, in whole seconds rounded up. Without it none is sent, but on Dataverse's
    /// routes the time until there is room again.
    #[serde(with = "seconds::optional")]
    pub retry_after: Option<Duration>,
    /// Sends Retry-After as an HTTP date instead of seconds.
    pub retry_after_date: bool,
    /// How long after a 429 an arriving request is taken for one that was sent before the client
    /// could know: hundreds of requests sent at once take a while to arrive.
    #[serde(with = "seconds")]
    pub retry_after_grace: Duration,
    /// Sent with each answer as `x-ms-dop-hint`.
    pub hint: Option<Hint>,
    /// Sends `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset` for the first budget of
    /// requests, or else for the rate.
    pub ratelimit_headers: bool,
    /// Share of the requests that are answered 500; nothing of them is stored.
    pub fail_share: f64,
    /// Share of the requests that are answered 503; nothing of them is stored.
    pub unavailable_share: f64,
    /// Share of the requests that are never answered.
    pub drop_share: f64,
    /// Whether requests that are never answered have been carried out: their outcome is unknown.
    pub drop_after_storing: bool,
    /// Share of the records that are refused, chosen by their identity: always the same ones.
    pub bad_share: f64,
    /// A record in which this is `true` is refused.
    pub bad_field: String,
    /// By which field a record is recognized when it comes again.
    pub id_field: String,
    /// Most records in one request; more are answered 413.
    pub max_group: Option<usize>,
    /// Most bytes in one request's body; more are answered 413.
    pub max_bytes: Option<usize>,
    /// Whether each record gets its own answer (207). Otherwise a refused record refuses its whole
    /// request (400), and nothing of it is stored.
    pub per_record_answers: bool,
    /// Accepted values of the `Authorization` header, such as `Bearer abc`; if empty, any.
    pub authorization: Vec<String>,
    /// What only Dataverse's routes know.
    pub dataverse: Dataverse,
    /// Serves HTTPS instead of HTTP.
    #[cfg(feature = "tls")]
    pub tls: Option<Tls>,
}

/// What only Dataverse's routes know.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Dataverse {
    /// Secrets by client id. If empty, no token is needed, and any secret gets one.
    pub users: BTreeMap<String, String>,
    /// How long a token is good for.
    #[serde(with = "seconds")]
    pub token_lifetime: Duration,
    /// Whether tables are elastic: `…Multiple` may succeed in part, and `DeleteMultiple` exists.
    pub elastic: bool,
}

/// A certificate and its key.
#[cfg(feature = "tls")]
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The certificate chain, in PEM.
    pub certificate: String,
    /// The private key, in PEM.
    pub key: String,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            delay: Duration::ZERO,
            delay_per_record: Duration::ZERO,
            jitter: 0.0,
            seed: 1,
            scale: 0.0,
            knee: None,
            concurrency: None,
            rate: None,
            budgets: Vec::new(),
            retry_after: None,
            retry_after_date: false,
            retry_after_grace: Duration::from_millis(250),
            hint: None,
            ratelimit_headers: false,
            fail_share: 0.0,
            unavailable_share: 0.0,
            drop_share: 0.0,
            drop_after_storing: false,
            bad_share: 0.0,
            bad_field: "bad".to_owned(),
            id_field: "id".to_owned(),
            max_group: None,
            max_bytes: None,
            per_record_answers: false,
            authorization: Vec::new(),
            dataverse: Dataverse::default(),
            #[cfg(feature = "tls")]
            tls: None,
        }
    }
}

impl Default for Dataverse {
    fn default() -> Self {
        let token_lifetime = Duration::from_secs(3599);
        Self { users: BTreeMap::new(), token_lifetime, elastic: false }
    }
}
