//! Between the driver and rustls.

use super::{Failure, Settings, binding::server_end_point};
use rustls::{ClientConfig, ProtocolVersion, pki_types::ServerName};
use std::{
    future::Future,
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::{
    Socket,
    tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream},
};
use tokio_rustls::{TlsConnector, client};

/// What became of a handshake.
#[derive(Clone, Debug, Default)]
pub(super) struct Handshaken(Arc<Mutex<Option<&'static str>>>);

impl Handshaken {
    /// The version of TLS that is spoken; `None` if none is.
    fn version(&self) -> Option<&'static str> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn done(&self, version: Option<ProtocolVersion>) {
        let name = match version {
            Some(ProtocolVersion::TLSv1_2) => "TLS 1.2",
            Some(ProtocolVersion::TLSv1_3) => "TLS 1.3",
            _ => "TLS",
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(name);
    }
}

/// Speaks TLS for one connection, and for what cancels its statements.
#[derive(Clone)]
pub(crate) struct Connector {
    /// `None` if TLS is never spoken.
    config: Option<Arc<ClientConfig>>,
    handshaken: Handshaken,
    /// Waits for the server's end of the connection before this one's: see [`Self::patient`].
    waits: bool,
}

impl Connector {
    /// Never speaks it.
    pub(crate) fn never() -> Self {
        Self { config: None, handshaken: Handshaken::default(), waits: false }
    }

    /// The version of TLS that is spoken; `None` if none is.
    pub(crate) fn version(&self) -> Option<&'static str> {
        self.handshaken.version()
    }

    pub(crate) fn new(settings: &Settings) -> Result<Self, Failure> {
        Ok(Self {
            config: Some(settings.client()?),
            handshaken: Handshaken::default(),
            waits: false,
        })
    }

    /// For a connection that only carries the wish to cancel a statement: whoever got it closes the connection, and a
    /// pooler that sees it closed before has not passed it on.
    pub(crate) fn patient(&self) -> Self {
        Self { handshaken: Handshaken::default(), waits: true, ..self.clone() }
    }
}

impl MakeTlsConnect<Socket> for Connector {
    type Stream = Stream;
    type TlsConnect = Handshake;
    type Error = Failure;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, Failure> {
        Ok(Handshake { connector: self.clone(), host: host.to_owned() })
    }
}

/// A handshake that has not begun. The server may turn out to speak no TLS: then it never does.
pub(crate) struct Handshake {
    connector: Connector,
    host: String,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Stream;
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, Failure>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let Self { connector, host } = self;
            let waits = connector.waits;
            let config = connector.config.ok_or_else(|| {
                Failure::settings("TLS is not spoken here (sslmode=disable)".to_owned())
            })?;
            let name = ServerName::try_from(host.clone()).map_err(|_| {
                Failure::settings(format!("`{host}` is not a name that a certificate can have"))
            })?;
            let handshake = TlsConnector::from(config).connect(name, socket);
            let stream = handshake.await.map_err(|error| Failure::of_handshake(&host, error))?;
            connector.handshaken.done(stream.get_ref().1.protocol_version());
            Ok(Stream { stream, waits })
        })
    }
}

/// A connection over TLS.
pub(crate) struct Stream {
    stream: client::TlsStream<Socket>,
    waits: bool,
}

impl TlsStream for Stream {
    fn channel_binding(&self) -> ChannelBinding {
        let certificates = self.stream.get_ref().1.peer_certificates();
        let hash = certificates.and_then(|all| all.first()).and_then(|it| server_end_point(it));
        hash.map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.waits {
            let mut rest = [0; 64];
            let mut rest = ReadBuf::new(&mut rest);
            let read = ready!(Pin::new(&mut self.stream).poll_read(context, &mut rest));
            self.waits = read.is_ok() && !rest.filled().is_empty();
        }
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
