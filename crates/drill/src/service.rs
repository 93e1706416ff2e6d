//! Starting and stopping: the listener and its connections.

#[cfg(feature = "tls")]
mod tls;

use crate::{app::App, counters::Counters, routes, spec::Spec};
use axum::{Router, body::Body};
use hyper::{
    Request, Response, body::Incoming, server::conn::http1, service::Service as HttpService,
};
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use std::{
    error::Error,
    fmt,
    io::{self, ErrorKind},
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    runtime::Handle,
    sync::oneshot,
    task::{JoinHandle, JoinSet},
};

/// Connections that wait to be accepted. The usual 128 loses some when a client opens hundreds.
const BACKLOG: u32 = 4096;

/// Until a failed accept is tried again: there may be no file descriptors left for a while.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A running service. It stops when this is dropped.
pub struct Service {
    addr: SocketAddr,
    scheme: &'static str,
    app: Arc<App>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Service {
    /// Listens on `addr`, which must be a loopback address; port 0 takes any free port. Runs on the
    /// current tokio runtime. Fails if the spec is out of range, the address is taken or not
    /// loopback, or there is no runtime.
    pub fn start(spec: Spec, addr: SocketAddr) -> io::Result<Self> {
        spec.check().map_err(|invalid| io::Error::new(ErrorKind::InvalidInput, invalid))?;
        if !addr.ip().is_loopback() {
            let problem = format!("{addr} is no loopback address: use 127.0.0.1 or [::1]");
            return Err(io::Error::new(ErrorKind::InvalidInput, problem));
        }
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let security = Security::new(&spec)?;
        let scheme = security.scheme();
        let listener = listen(addr)?;
        let addr = listener.local_addr()?;
        let app = Arc::new(App::new(spec));
        let (stop, stopped) = oneshot::channel();
        let router = TowerToHyperService::new(routes::router(Arc::clone(&app)));
        let counted = Arc::clone(&app);
        let connected = move || counted.ledger().count_connection();
        let task = runtime.spawn(serve(listener, security, router, connected, stopped));
        Ok(Self { addr, scheme, app, stop: Some(stop), task })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Its base, such as `http://127.0.0.1:8080`.
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.addr)
    }

    /// What it saw up to now.
    pub fn counters(&self) -> Counters {
        self.app.counters()
    }

    /// Sets all counters to zero and forgets all records and windows.
    pub fn reset(&self) {
        self.app.ledger().reset();
    }

    /// Stops at once, as a crash would: after it returns, all connections are closed, and requests
    /// that were in flight stay without an answer.
    pub async fn stop(mut self) {
        // If it is gone, the task has ended.
        drop(self.stop.take());
        let _ = (&mut self.task).await;
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Service").field("url", &self.url()).finish_non_exhaustive()
    }
}

fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A service that was stopped can be started again on the same port.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    socket.listen(BACKLOG)
}

/// What answers requests. Where it fails, the connection is closed without an answer.
pub(crate) trait Answers:
    HttpService<
        Request<Incoming>,
        Response = Response<Body>,
        Error: Into<Box<dyn Error + Send + Sync>>,
        Future: Send,
    > + Clone
    + Send
    + 'static
{
}

impl<S> Answers for S where
    S: HttpService<
            Request<Incoming>,
            Response = Response<Body>,
            Error: Into<Box<dyn Error + Send + Sync>>,
            Future: Send,
        > + Clone
        + Send
        + 'static
{
}

/// A service on a free loopback port, without TLS. It stops when this is dropped.
pub(crate) struct Listener {
    addr: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Listener {
    pub fn start(router: Router) -> io::Result<Self> {
        Self::serve(TowerToHyperService::new(router))
    }

    pub fn serve(service: impl Answers) -> io::Result<Self> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let listener = listen((Ipv4Addr::LOCALHOST, 0).into())?;
        let addr = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let task = runtime.spawn(serve(listener, Security::None, service, || {}, stopped));
        Ok(Self { addr, stop: Some(stop), task })
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// All connections are closed when this returns.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        let _ = (&mut self.task).await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Accepts until it is told to stop. Its connections end with it.
async fn serve(
    listener: TcpListener,
    security: Security,
    service: impl Answers,
    connected: impl Fn(),
    mut stopped: oneshot::Receiver<()>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            _ = &mut stopped => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connected();
                    connections.spawn(connection(stream, security.clone(), service.clone()));
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
        }
    }
    drop(listener);
    connections.shutdown().await;
}

/// Serves one connection. What goes wrong on it is the client's to notice.
async fn connection(stream: TcpStream, security: Security, service: impl Answers) {
    // Answers are small and must not wait for more to come.
    let _ = stream.set_nodelay(true);
    match security {
        Security::None => {
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        }
        #[cfg(feature = "tls")]
        Security::Tls(acceptor) => {
            if let Ok(stream) = acceptor.accept(stream).await {
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            }
        }
    }
}

/// Whether connections are encrypted.
#[derive(Clone)]
enum Security {
    None,
    #[cfg(feature = "tls")]
    Tls(tokio_rustls::TlsAcceptor),
}

impl Security {
    #[cfg(feature = "tls")]
    fn new(spec: &Spec) -> io::Result<Self> {
        spec.tls.as_ref().map_or(Ok(Self::None), |it| tls::acceptor(it).map(Self::Tls))
    }

    #[cfg(not(feature = "tls"))]
    fn new(_: &Spec) -> io::Result<Self> {
        Ok(Self::None)
    }

    fn scheme(&self) -> &'static str {
        match self {
            Self::None => "http",
            #[cfg(feature = "tls")]
            Self::Tls(_) => "https",
        }
    }
}
