//! The servers that the tests run against: always the stand-in, and a real one if there is any.

use super::stand_in::StandIn;
use serde_json::{Value, json};
use std::{
    io::Write,
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        Once,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};
use tempfile::TempDir;

/// How long a real server may take to start.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server, and what ends it.
pub struct Server {
    pub url: String,
    pub name: &'static str,
    _guard: Guard,
}

enum Guard {
    StandIn(#[allow(dead_code, reason = "held until the test ends")] StandIn),
    Process(Child, #[allow(dead_code, reason = "held until the test ends")] TempDir),
    Foreign,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Self::Process(child, _) = self {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The stand-in, and the server at `QDRANT_URL` or a new one if `qdrant` is installed.
pub async fn servers() -> Vec<Server> {
    let stand_in = StandIn::start(None).await;
    let url = stand_in.url.clone();
    let mut servers = vec![Server { url, name: "stand-in", _guard: Guard::StandIn(stand_in) }];
    match real().await {
        Some(server) => servers.push(server),
        None => say_that_it_is_skipped(),
    }
    servers
}

/// Past the capture of the tests' output: it must be seen although all tests pass.
fn say_that_it_is_skipped() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let text = "SKIPPED against a real Qdrant: set QDRANT_URL, or put `qdrant` on the PATH";
        std::io::stderr().write_all(format!("{text}\n").as_bytes()).unwrap();
    });
}

async fn real() -> Option<Server> {
    if let Ok(url) = std::env::var("QDRANT_URL") {
        return Some(Server { url, name: "QDRANT_URL", _guard: Guard::Foreign });
    }
    let path = std::env::var_os("PATH")?;
    let program =
        std::env::split_paths(&path).map(|it| it.join("qdrant")).find(|it| it.is_file())?;
    Some(spawn(program).await)
}

async fn spawn(program: PathBuf) -> Server {
    let directory = TempDir::new().unwrap();
    let (http, grpc) = (free_port(), free_port());
    let child = Command::new(program)
        .current_dir(directory.path())
        .env("QDRANT__SERVICE__HOST", "127.0.0.1")
        .env("QDRANT__SERVICE__HTTP_PORT", http.to_string())
        .env("QDRANT__SERVICE__GRPC_PORT", grpc.to_string())
        .env("QDRANT__STORAGE__STORAGE_PATH", directory.path().join("storage"))
        .env("QDRANT__STORAGE__SNAPSHOTS_PATH", directory.path().join("snapshots"))
        .env("QDRANT__TELEMETRY_DISABLED", "true")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let url = format!("http://127.0.0.1:{http}");
    let server = Server { url, name: "qdrant", _guard: Guard::Process(child, directory) };
    let started = Instant::now();
    while client().get(format!("{}/readyz", server.url)).send().await.is_err() {
        assert!(started.elapsed() < PATIENCE, "qdrant does not start");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    server
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A name that no collection has yet.
pub fn new_name(topic: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("tidegate-test-{topic}-{}-{number}", since.as_nanos())
}

impl Server {
    /// A collection with vectors of this size, by its name.
    pub async fn collection(&self, topic: &str, size: usize) -> String {
        let name = new_name(topic);
        let body = json!({ "vectors": { "size": size, "distance": "Dot" } });
        let (status, answer) = self.ask("PUT", &format!("/collections/{name}"), body).await;
        assert_eq!(status, 200, "{answer}");
        name
    }

    pub async fn count(&self, collection: &str) -> u64 {
        let path = format!("/collections/{collection}/points/count");
        let (status, answer) = self.ask("POST", &path, json!({ "exact": true })).await;
        assert_eq!(status, 200, "{answer}");
        answer["result"]["count"].as_u64().unwrap()
    }

    /// Points in the order of their ids; those that do not exist are left out.
    pub async fn points(&self, collection: &str, ids: Value) -> Vec<Value> {
        let body = json!({ "ids": ids, "with_payload": true, "with_vector": true });
        let path = format!("/collections/{collection}/points");
        let (status, answer) = self.ask("POST", &path, body).await;
        assert_eq!(status, 200, "{answer}");
        let mut found = answer["result"].as_array().unwrap().clone();
        found.sort_by_key(|point| point["id"].to_string());
        found
    }

    pub async fn remove(&self, collection: &str) {
        self.ask("DELETE", &format!("/collections/{collection}"), Value::Null).await;
    }

    async fn ask(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let request = client().request(method, format!("{}{path}", self.url));
        let request = request.header("content-type", "application/json").body(body.to_string());
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        (status, serde_json::from_slice(&response.bytes().await.unwrap()).unwrap())
    }
}

fn client() -> reqwest::Client {
    // Fails if another test was first, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}
