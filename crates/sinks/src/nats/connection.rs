//! A connection that is made once.
//!
//! The client would make it again by itself and then send what it still holds: messages that were
//! reported as lost and may have been overtaken meanwhile. So it gets no credentials once it has been
//! connected, and ends when the connection is lost.

use super::{
    answer::{self, Meaning},
    credential::Credential,
    request::Request,
};
use crate::{broker::Reply, client::CONNECT, dialer::Dialer, failure::Failure, server::Server};
use async_nats::{
    AuthError, ConnectOptions, Event, ServerAddr,
    jetstream::{
        self,
        context::{ContextBuilder, PublishAckFuture},
    },
};
use std::{
    collections::HashMap,
    future::IntoFuture,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};
use tidegate_core::sink::Verdict;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout_at},
};

/// How soon a silent connection is noticed: after three of these.
const PING: Duration = Duration::from_secs(10);

/// More than can be under way; with less, deliveries would wait for each other's places.
const UNDER_WAY: usize = 1_000_000;

/// Longer than any delivery: its deadline comes first.
const FOREVER: Duration = Duration::from_secs(24 * 3600);

/// How long a look at the account may hold up what follows.
const LOOK: Duration = Duration::from_secs(1);

/// An open connection to one server.
pub struct Connection {
    jetstream: jetstream::Context,
    shared: Arc<Shared>,
    /// Whether a stream has taken a message.
    is_heard: AtomicBool,
}

/// What a connection and its client's events have in common.
#[derive(Default)]
struct Shared {
    state: watch::Sender<State>,
    /// How many messages are under way, by subject.
    under_way: Mutex<HashMap<String, usize>>,
}

/// What a connection has come to.
#[derive(Default)]
struct State {
    lost: Option<Failure>,
    /// By subject, why there is no answer. Only of subjects that have a message under way: a
    /// connection may see any number of subjects, and a right may be given later.
    forbidden: HashMap<String, String>,
}

/// Hears the client's events. When the client has ended, there are none any more.
struct Ear(Arc<Shared>);

impl Drop for Ear {
    fn drop(&mut self) {
        self.0.lose(Failure::Unavailable("the connection to NATS has ended".to_owned()));
    }
}

/// A message under way.
pub struct Sent {
    subject: Subject,
    ack: PublishAckFuture,
}

/// A subject with a message under way.
struct Subject {
    name: String,
    shared: Arc<Shared>,
}

impl Subject {
    fn new(name: &str, shared: &Arc<Shared>) -> Self {
        *shared.under_way().entry(name.to_owned()).or_default() += 1;
        Self { name: name.to_owned(), shared: Arc::clone(shared) }
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        let mut under_way = self.shared.under_way();
        let Some(count) = under_way.get_mut(&self.name) else { return };
        *count -= 1;
        if *count == 0 {
            under_way.remove(&self.name);
            let name = &self.name;
            self.shared.state.send_if_modified(|state| {
                state.forbidden.remove(name);
                false
            });
        }
    }
}

impl Shared {
    /// Takes note of what an event means.
    fn note(&self, event: &Event) {
        match answer::meaning(event) {
            Meaning::Nothing => {}
            Meaning::Lost(failure) => self.lose(failure),
            Meaning::Forbidden { subject, reason } => {
                let under_way = self.under_way();
                if under_way.contains_key(&subject) {
                    self.state.send_modify(|state| {
                        state.forbidden.insert(subject, reason);
                    });
                }
            }
        }
    }

    fn lose(&self, failure: Failure) {
        self.state.send_modify(|state| {
            state.lost.get_or_insert(failure);
        });
    }

    fn under_way(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Connects to the first of the server's addresses that takes it.
    pub async fn open(
        server: &Server,
        dialer: &Dialer,
        credential: &Credential,
    ) -> Result<Self, Failure> {
        let addresses = dialer.resolve(server).await?;
        Self::open_at(server, &addresses, dialer, credential).await
    }

    /// The client gets addresses that were judged, and no name that it would resolve again.
    async fn open_at(
        server: &Server,
        addresses: &[SocketAddr],
        dialer: &Dialer,
        credential: &Credential,
    ) -> Result<Self, Failure> {
        let mut last = Failure::Unavailable(format!("{server} has no address"));
        let within = CONNECT / u32::try_from(addresses.len()).unwrap_or(1).max(1);
        for address in addresses {
            last = match Self::connect(server, *address, within, dialer, credential).await {
                Err(Failure::Unavailable(problem)) => Failure::Unavailable(problem),
                answer => return answer,
            };
        }
        Err(last)
    }

    async fn connect(
        server: &Server,
        address: SocketAddr,
        within: Duration,
        dialer: &Dialer,
        credential: &Credential,
    ) -> Result<Self, Failure> {
        let shared = Arc::new(Shared::default());
        let ear = Ear(Arc::clone(&shared));
        let made = Arc::new(AtomicBool::new(false));
        let scheme = if server.secure { "tls" } else { "nats" };
        let address: ServerAddr = format!("{scheme}://{address}")
            .parse()
            .map_err(|error| Failure::Broken(format!("{server} is no address: {error}")))?;
        let options = options(credential.clone(), Arc::clone(&made))
            .connection_timeout(within)
            .tls_client_config(dialer.tls_of(server)?)
            .event_callback(move |event| {
                ear.0.note(&event);
                std::future::ready(())
            });
        let client = options
            .connect(address)
            .await
            .map_err(|error| answer::unconnected(&error, &server.to_string()))?;
        made.store(true, Relaxed);
        let jetstream =
            ContextBuilder::new().max_ack_inflight(UNDER_WAY).timeout(FOREVER).build(client);
        Ok(Self { jetstream, shared, is_heard: AtomicBool::new(false) })
    }

    pub fn is_alive(&self) -> bool {
        self.shared.state.borrow().lost.is_none()
    }

    /// Asks for the account: it has JetStream or not.
    pub async fn check(&self) -> Result<(), Failure> {
        let asked = Subject::new("$JS.API.INFO", &self.shared);
        tokio::select! {
            account = self.jetstream.query_account() => {
                account.map(drop).map_err(|error| answer::unchecked(&error))
            }
            // Who may not ask may still publish.
            ended = self.ended(&asked.name) => ended.map(drop),
        }
    }

    /// Why nobody hears any message, if so: none of them is to blame then. The streams may be those of another
    /// account, of which only an acknowledgement tells.
    pub async fn why_unheard(&self, deadline: Instant) -> Option<Failure> {
        if self.is_heard.load(Relaxed) {
            return None;
        }
        match timeout_at(deadline.min(Instant::now() + LOOK), self.check()).await {
            Ok(Err(failure @ Failure::Broken(_))) => Some(failure),
            _ => None,
        }
    }

    /// Sends a message, or says what became of it.
    pub async fn send(&self, request: Request, deadline: Instant) -> Result<Sent, Reply> {
        let Request { subject, message } = request;
        let subject = Subject::new(&subject, &self.shared);
        let publish = self.jetstream.send_publish(subject.name.clone(), message);
        tokio::select! {
            biased;
            ended = self.ended(&subject.name) => Err(ended),
            sent = timeout_at(deadline, publish) => match sent {
                Ok(Ok(ack)) => Ok(Sent { subject, ack }),
                Ok(Err(error)) => Err(answer::refused(&error, &subject.name)),
                Err(_) => Err(Err(Failure::TimedOut)),
            },
        }
    }

    /// Waits for the answer to a message. One that has come counts, whatever came after it.
    pub async fn answer(&self, sent: Sent, deadline: Instant) -> Reply {
        let Sent { subject, ack } = sent;
        tokio::select! {
            biased;
            ack = ack.into_future() => match ack {
                Ok(_) => {
                    self.is_heard.store(true, Relaxed);
                    Ok(Verdict::Done)
                }
                Err(error) => answer::refused(&error, &subject.name),
            },
            ended = self.ended(&subject.name) => ended,
            () = sleep_until(deadline) => Err(Failure::TimedOut),
        }
    }

    /// Returns when no answer will come for what was sent to a subject.
    async fn ended(&self, subject: &str) -> Reply {
        let mut state = self.shared.state.subscribe();
        let ended = |state: &State| state.lost.is_some() || state.forbidden.contains_key(subject);
        match state.wait_for(ended).await {
            Ok(state) => match (&state.lost, state.forbidden.get(subject)) {
                (_, Some(reason)) => Ok(Verdict::Retry(reason.clone())),
                (Some(failure), None) => Err(failure.clone()),
                (None, None) => Err(Failure::TimedOut),
            },
            Err(_) => Err(Failure::Unavailable("the connection to NATS has ended".to_owned())),
        }
    }
}

fn options(credential: Credential, made: Arc<AtomicBool>) -> ConnectOptions {
    ConnectOptions::with_auth_callback(move |nonce| {
        std::future::ready(if made.load(Relaxed) {
            Err(AuthError::new("a connection is made once"))
        } else {
            credential.prove(&nonce)
        })
    })
    .name("tidegate")
    .ping_interval(PING)
    .max_reconnects(1)
    // What a server tells of others was judged by nobody.
    .ignore_discovered_servers()
}

#[cfg(test)]
mod tests;
