//! A door in front of a server: closed, open, shut in the face, or held.

use rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer};
use std::{net::SocketAddr, sync::Arc};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split},
    net::{TcpSocket, TcpStream},
    sync::watch,
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Everything passes.
    Open,
    /// Whoever comes is sent away, and whoever was there.
    Shut,
    /// Nothing passes, nobody is told.
    Stalled,
}

pub struct Gate {
    address: SocketAddr,
    server: SocketAddr,
    mode: watch::Sender<Mode>,
    /// Bound, but not listening: connections are refused.
    socket: Option<TcpSocket>,
    task: Option<JoinHandle<()>>,
    tls: Option<TlsAcceptor>,
}

impl Gate {
    pub fn closed(server: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = socket.local_addr().unwrap();
        let mode = watch::Sender::new(Mode::Open);
        Self { address, server, mode, socket: Some(socket), task: None, tls: None }
    }

    /// An open one that speaks TLS to whoever comes, and the certificate to trust, in PEM.
    pub fn secured(server: SocketAddr) -> (Self, String) {
        let (acceptor, certificate) = acceptor("127.0.0.1");
        let mut gate = Self::closed(server);
        gate.tls = Some(acceptor);
        gate.open();
        (gate, certificate)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn open(&mut self) {
        self.mode.send_replace(Mode::Open);
        let Some(socket) = self.socket.take() else { return };
        let listener = socket.listen(64).unwrap();
        let (server, tls) = (self.server, self.tls.clone());
        let mode = self.mode.subscribe();
        self.task = Some(tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (tls, mode) = (tls.clone(), mode.clone());
                tokio::spawn(async move {
                    match tls {
                        None => pass(client, server, mode).await,
                        Some(tls) => {
                            if let Ok(client) = tls.accept(client).await {
                                pass(client, server, mode).await;
                            }
                        }
                    }
                });
            }
        }));
    }

    pub fn shut(&self) {
        self.mode.send_replace(Mode::Shut);
    }

    pub fn stall(&self) {
        self.mode.send_replace(Mode::Stalled);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.task.iter().for_each(JoinHandle::abort);
    }
}

/// What a server with a certificate for this name accepts with, and the certificate in PEM.
pub fn acceptor(name: &str) -> (TlsAcceptor, String) {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), made.cert.pem())
}

async fn pass(
    client: impl AsyncRead + AsyncWrite,
    server: SocketAddr,
    mut mode: watch::Receiver<Mode>,
) {
    if *mode.borrow_and_update() == Mode::Shut {
        return;
    }
    let Ok(server) = TcpStream::connect(server).await else { return };
    let (from_client, to_client) = split(client);
    let (from_server, to_server) = split(server);
    tokio::select! {
        () = pump(from_client, to_server, mode.clone()) => {}
        () = pump(from_server, to_client, mode.clone()) => {}
    }
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut mode: watch::Receiver<Mode>,
) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = tokio::select! {
            shut = mode.wait_for(|mode| *mode == Mode::Shut) => return drop(shut),
            read = from.read(&mut buffer) => read.unwrap_or(0),
        };
        if read == 0 {
            return;
        }
        match mode.wait_for(|mode| *mode != Mode::Stalled).await.as_deref() {
            Ok(Mode::Open) => {}
            _ => return,
        }
        if to.write_all(&buffer[..read]).await.is_err() || to.flush().await.is_err() {
            return;
        }
    }
}
