//! A TCP proxy on loopback that goes silent when it is told to, and remembers how connections began.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering::SeqCst},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf},
};

/// A running proxy. It ends with its runtime.
pub struct Proxy {
    port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// Connections that were made before this one pass nothing on.
    silent_before: AtomicU64,
    made: AtomicU64,
    /// The first bytes that a client sent on each connection.
    openings: Mutex<Vec<Vec<u8>>>,
}

impl Proxy {
    /// Passes connections on to a port on loopback.
    pub async fn start(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, state) = (listener.local_addr().unwrap().port(), Arc::<State>::default());
        let accepting = state.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let number = accepting.made.fetch_add(1, SeqCst);
                let Ok(server) = TcpStream::connect(("127.0.0.1", target)).await else { continue };
                let ((from_client, to_client), (from_server, to_server)) =
                    (client.into_split(), server.into_split());
                tokio::spawn(pass(from_client, to_server, number, true, accepting.clone()));
                tokio::spawn(pass(from_server, to_client, number, false, accepting.clone()));
            }
        });
        Self { port, state }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// From now on, connections that are open stay so, but nothing comes out of them.
    pub fn swallow(&self) {
        self.state.silent_before.store(self.state.made.load(SeqCst), SeqCst);
    }

    /// How many connections were made.
    pub fn made(&self) -> u64 {
        self.state.made.load(SeqCst)
    }

    /// The first bytes that a client sent on each connection.
    pub fn openings(&self) -> Vec<Vec<u8>> {
        self.state.openings.lock().unwrap().clone()
    }
}

async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    number: u64,
    is_client: bool,
    state: Arc<State>,
) {
    let (mut buffer, mut is_first) = (vec![0; 64 << 10], is_client);
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if std::mem::take(&mut is_first) {
            state.openings.lock().unwrap().push(buffer[..length].to_vec());
        }
        let is_silent = number < state.silent_before.load(SeqCst);
        if !is_silent && to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
