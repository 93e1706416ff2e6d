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
    sync::{
        Arc,
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
    state: watch::Receiver<State>,
    /// Whether a stream has taken a message.
    is_heard: AtomicBool,
}

/// What a connection has come to.
#[derive(Default)]
struct State {
    lost: Option<Failure>,
    /// By subject, why there is no answer.
    forbidden: HashMap<String, String>,
}

/// A message under way.
pub struct Sent {
    subject: String,
    ack: PublishAckFuture,
}

impl Connection {
    pub async fn open(
        server: &Server,
        dialer: &Dialer,
        credential: &Credential,
    ) -> Result<Self, Failure> {
        // The client resolves the name again: it must be able to compare it with the certificate.
        dialer.judge(server).await?;
        let (sender, state) = watch::channel(State::default());
        let made = Arc::new(AtomicBool::new(false));
        let scheme = if server.secure { "tls" } else { "nats" };
        let address: ServerAddr = format!("{scheme}://{server}")
            .parse()
            .map_err(|error| Failure::Broken(format!("{server} is no address: {error}")))?;
        let options = options(credential.clone(), Arc::clone(&made))
            .tls_client_config(dialer.tls())
            .event_callback(move |event| note(&sender, &event));
        let client = options
            .connect(address)
            .await
            .map_err(|error| answer::unconnected(&error, &server.to_string()))?;
        made.store(true, Relaxed);
        let jetstream =
            ContextBuilder::new().max_ack_inflight(UNDER_WAY).timeout(FOREVER).build(client);
        Ok(Self { jetstream, state, is_heard: AtomicBool::new(false) })
    }

    pub fn is_alive(&self) -> bool {
        self.state.borrow().lost.is_none()
    }

    /// Asks for the account: it has JetStream or not.
    pub async fn check(&self) -> Result<(), Failure> {
        tokio::select! {
            account = self.jetstream.query_account() => {
                account.map(drop).map_err(|error| answer::unchecked(&error))
            }
            // Who may not ask may still publish.
            ended = self.ended("$JS.API.INFO") => ended.map(drop),
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
        let publish = self.jetstream.send_publish(subject.clone(), message);
        tokio::select! {
            biased;
            ended = self.ended(&subject) => Err(ended),
            sent = timeout_at(deadline, publish) => match sent {
                Ok(Ok(ack)) => Ok(Sent { subject, ack }),
                Ok(Err(error)) => Err(answer::refused(&error, &subject)),
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
                Err(error) => answer::refused(&error, &subject),
            },
            ended = self.ended(&subject) => ended,
            () = sleep_until(deadline) => Err(Failure::TimedOut),
        }
    }

    /// Returns when no answer will come for what was sent to a subject.
    async fn ended(&self, subject: &str) -> Reply {
        let mut state = self.state.clone();
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
    .connection_timeout(CONNECT)
    .ping_interval(PING)
    .max_reconnects(1)
    .ignore_discovered_servers()
}

/// Takes note of what an event means.
fn note(state: &watch::Sender<State>, event: &Event) -> std::future::Ready<()> {
    match answer::meaning(event) {
        Meaning::Nothing => {}
        Meaning::Lost(failure) => state.send_modify(|state| {
            state.lost.get_or_insert(failure);
        }),
        Meaning::Forbidden { subject, reason } => state.send_modify(|state| {
            state.forbidden.insert(subject, reason);
        }),
    }
    std::future::ready(())
}
