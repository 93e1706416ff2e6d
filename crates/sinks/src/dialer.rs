//! The one place that opens connections which are not HTTP.

use crate::{
    ConfigError,
    address::Rules,
    client::Settings,
    failure::Failure,
    resolver::resolve,
    server::Server,
    tls::{self, Tls},
};
use rustls::pki_types::ServerName;
use std::{error::Error, fmt, io, net::SocketAddr, sync::Arc};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

/// What is read from and written to, in the clear or not.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// An open connection.
pub type Stream = Box<dyn Duplex>;

/// Opens connections under one sink's rules.
#[derive(Clone)]
pub struct Dialer {
    rules: Rules,
    tls: Arc<Tls>,
}

impl Dialer {
    /// Checks the addresses as far as that is possible without resolving them. Secrets go in the
    /// clear only where the config names the host.
    pub fn new(
        settings: Settings<'_>,
        servers: &[Server],
        has_secret: bool,
    ) -> Result<Self, ConfigError> {
        let rules = Rules::new(settings.allow);
        for server in servers {
            if has_secret && !server.secure && !rules.name(&server.url) {
                let problem = format!(
                    "sends secrets in the clear: use {}://, or name the host in `allow`",
                    server.scheme.secure
                );
                return Err(ConfigError::new("url", problem));
            }
            rules
                .judge_literal(&server.url)
                .map_err(|error| ConfigError::new("url", format!("is out of bounds: {error}")))?;
        }
        let tls = Arc::new(tls::client(settings.secure, settings.ca_file)?);
        Ok(Self { rules, tls })
    }

    /// How TLS is spoken, for a client that opens its connections itself, to an address of the server.
    #[cfg(feature = "nats")]
    pub fn tls_of(&self, server: &Server) -> Result<rustls::ClientConfig, Failure> {
        Ok(self.tls.client_of(name(server)?))
    }

    /// Where the server is, as far as the rules let it be reached. Whoever connects uses these addresses:
    /// a name may mean another place when it is resolved again.
    pub async fn resolve(&self, server: &Server) -> Result<Vec<SocketAddr>, Failure> {
        self.rules.judge_literal(&server.url)?;
        let failed = |error: Box<dyn Error + Send + Sync>| self.failure(&*error, server);
        let found = resolve(&self.rules, &server.host(), server.port).await.map_err(failed)?;
        if found.is_empty() {
            return Err(Failure::Unavailable(format!("{server} has no address")));
        }
        Ok(found)
    }

    /// Opens a connection.
    pub async fn open(&self, server: &Server) -> Result<Stream, Failure> {
        let addresses = self.resolve(server).await?;
        let failed = |error: io::Error| self.failure(&error, server);
        let socket = TcpStream::connect(&*addresses).await.map_err(failed)?;
        socket.set_nodelay(true).map_err(failed)?;
        if !server.secure {
            return Ok(Box::new(socket));
        }
        let tls = TlsConnector::from(Arc::new(self.tls.client.clone()));
        Ok(Box::new(tls.connect(name(server)?, socket).await.map_err(failed)?))
    }

    fn failure(&self, error: &(dyn Error + 'static), server: &Server) -> Failure {
        Failure::of_connecting(error, &server.to_string(), server.scheme.plain)
    }
}

/// The name that the server's certificate must have.
fn name(server: &Server) -> Result<ServerName<'static>, Failure> {
    ServerName::try_from(server.host())
        .map_err(|_| Failure::Broken(format!("{server} has a name that no certificate has")))
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer").field("rules", &self.rules).finish_non_exhaustive()
    }
}
