//! lapin on a connection of ours.
//!
//! Left to itself it would bring a TLS library and a resolver of its own; so it is handed a stream
//! that is already open, once.

use crate::dialer::Stream;
use async_rs::{
    Runtime, Tokio,
    traits::Reactor,
    util::{DummyIO, RuntimeParts},
};
use futures_util::Stream as Ticks;
use lapin::{AsyncTcpStream, Connection, ConnectionProperties, Error, uri::AMQPUri};
use std::{
    io::{self, Read, Write},
    net::SocketAddr,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio_util::compat::{Compat, TokioAsyncReadCompatExt};
use tracing::subscriber::{NoSubscriber, set_default};

/// Greets RabbitMQ on an open stream.
pub async fn handshake(
    stream: Stream,
    uri: AMQPUri,
    properties: ConnectionProperties,
) -> Result<Connection, Error> {
    let runtime = Runtime::new(RuntimeParts::new(Tokio::current(), Open(Tokio::current())));
    let stream = Mutex::new(Some(stream));
    let connect = async move |_, _| {
        keep_quiet();
        let stream = stream.lock().unwrap_or_else(PoisonError::into_inner).take();
        let stream = stream.ok_or_else(made_once)?;
        Ok(AsyncTcpStream::Plain(stream.compat()))
    };
    Connection::connector(uri, runtime, connect, properties).await
}

/// This runs in the thread that lapin has for the connection. There it would log each message that
/// comes back, payload and all; what matters is in its errors.
fn keep_quiet() {
    std::mem::forget(set_default(NoSubscriber::default()));
}

fn made_once() -> io::Error {
    io::Error::other("a connection is made once")
}

/// tokio, but for its connections, which are ours.
#[derive(Clone, Debug)]
struct Open(Tokio);

impl Reactor for Open {
    type TcpStream = Compat<Stream>;
    type Sleep = <Tokio as Reactor>::Sleep;

    #[allow(refining_impl_trait, reason = "nothing is ever registered")]
    fn register<H: Read + Write + Send + 'static>(&self, _: H) -> io::Result<DummyIO> {
        Err(made_once())
    }

    fn sleep(&self, time: Duration) -> Self::Sleep {
        self.0.sleep(time)
    }

    fn interval(&self, time: Duration) -> impl Ticks<Item = Instant> + Send + 'static {
        self.0.interval(time)
    }

    fn tcp_connect_addr(
        &self,
        _: SocketAddr,
    ) -> impl Future<Output = io::Result<Self::TcpStream>> + Send + 'static {
        std::future::ready(Err(made_once()))
    }
}
