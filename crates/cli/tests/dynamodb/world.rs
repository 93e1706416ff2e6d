//! A table, the binary that uses it, and a service that has one answer for everything.

use crate::support::{Place, Said};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    process::{self, Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
};

static TABLES: AtomicUsize = AtomicUsize::new(0);

/// A directory of its own, and the name of a table that nobody else has.
pub struct World {
    pub place: Place,
    pub table: String,
    pub server: String,
    /// Messages are read as soon as they are there, unless a test says otherwise.
    pub min_age: &'static str,
}

impl World {
    /// There is no table yet.
    pub fn new() -> Self {
        let server = std::env::var("TIDEGATE_TEST_DYNAMODB")
            .expect("TIDEGATE_TEST_DYNAMODB is not set; `cargo xtask test` sets it");
        Self::at(server)
    }

    pub fn at(server: String) -> Self {
        let table = format!("cli-{}-{}", process::id(), TABLES.fetch_add(1, Relaxed));
        Self { place: Place::new(), table, server, min_age: "0ms" }
    }

    /// With tables, and a sink that is a file.
    pub fn with_tables() -> Self {
        let world = Self::new();
        world.settings("[sinks.out]\nkind = 'file'\npath = 'out.ndjson'\n");
        world.ok(&["migrate"]);
        world
    }

    pub fn address(&self) -> String {
        format!(
            "dynamodb://{}?region=eu-central-1&endpoint={}&min_age={}",
            self.table, self.server, self.min_age
        )
    }

    /// Writes the settings: the store, all topics to the sink `out`, and this.
    pub fn settings(&self, more: &str) {
        let routes = "[[routes]]\ntopic = '*'\nsink = 'out'\n";
        let text = format!("store = '{}'\n{more}{routes}", self.address());
        self.place.write("tidegate.toml", text);
    }

    /// The binary with credentials, and with nothing else of AWS that this machine may have.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.place.command(args);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("AWS_")) {
            command.env_remove(name);
        }
        command
            .envs([("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "secret")])
            .envs([("AWS_EC2_METADATA_DISABLED", "true"), ("AWS_CONFIG_FILE", "none")])
            .envs([("AWS_SHARED_CREDENTIALS_FILE", "none")]);
        command
    }

    pub fn tidegate(&self, args: &[&str]) -> Said {
        self.command(args).output().unwrap().into()
    }

    /// The command must succeed.
    pub fn ok(&self, args: &[&str]) -> String {
        let said = self.tidegate(args);
        assert_eq!(said.code, 0, "{args:?}: {}", said.stderr);
        said.stdout
    }

    /// The command must succeed with JSON.
    pub fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ok(&[args, &["--json"]].concat())).unwrap()
    }

    pub fn publish_lines(&self, args: &[&str], lines: &str) -> Said {
        let mut command = self.command(&[&["publish"], args, &["--lines"]].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // Who is refused early does not read all of it.
        let _ = child.stdin.take().unwrap().write_all(lines.as_bytes());
        child.wait_with_output().unwrap().into()
    }

    /// Publishes numbers, so many with each key, the keys in turn.
    pub fn publish(&self, keys: usize, each: usize) {
        let lines =
            |of: usize| (0..each).map(|n| format!("{}\n", of * each + n)).collect::<String>();
        for key in 0..keys {
            let key_name = format!("key-{key}");
            let said = self.publish_lines(&["orders", "--key", &key_name], &lines(key));
            assert_eq!(said.code, 0, "{}", said.stderr);
        }
    }

    /// What was written to a file, in its order: the key and the number.
    pub fn delivered(&self, file: &str) -> Vec<(String, u64)> {
        let text = fs::read_to_string(self.place.path(file)).unwrap_or_default();
        let line = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap();
            (line["key"].as_str().unwrap_or_default().to_owned(), line["payload"].as_u64().unwrap())
        };
        text.lines().map(line).collect()
    }

    pub fn outstanding(&self) -> u64 {
        self.json(&["outbox", "status"])["outstanding"].as_u64().unwrap()
    }

    /// Asks the server itself.
    pub fn ask(&self, operation: &str, body: &Value) -> Value {
        ask(&self.server, &format!("DynamoDB_20120810.{operation}"), body)
    }

    /// How many items a table has.
    pub fn items(&self, table: &str) -> u64 {
        let answer = self.ask("Scan", &json!({ "TableName": table, "Select": "COUNT" }));
        answer["Count"].as_u64().unwrap()
    }
}

/// Asks a server that plays a service of AWS. It checks no signature.
pub fn ask(server: &str, target: &str, body: &Value) -> Value {
    let (body, host) = (body.to_string(), server.strip_prefix("http://").unwrap());
    let service = if target.starts_with("DynamoDB") { "dynamodb" } else { "sqs" };
    let mut stream = TcpStream::connect(host).unwrap();
    let credential = format!("Credential=a/20260101/eu-central-1/{service}/aws4_request");
    write!(
        stream,
        "POST / HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {}\r\n\
         x-amz-target: {target}\r\nx-amz-date: 20260101T000000Z\r\n\
         content-type: application/x-amz-json-1.0\r\n\
         authorization: AWS4-HMAC-SHA256 {credential}, SignedHeaders=host, Signature=0\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// A service that gives every request the same answer. Returns its address.
pub fn service(status: u16, body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(stream, status, body));
        }
    });
    format!("http://127.0.0.1:{port}")
}

fn answer(mut stream: TcpStream, status: u16, body: &str) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let (mut length, mut line) = (0, String::new());
        loop {
            line.clear();
            match reader.read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if line.trim().is_empty() => break,
                Ok(_) => {}
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        if reader.read_exact(&mut vec![0; length]).is_err() {
            return;
        }
        let head = format!("HTTP/1.1 {status} Whatever\r\ncontent-length: {}\r\n", body.len());
        if write!(stream, "{head}content-type: application/x-amz-json-1.0\r\n\r\n{body}").is_err() {
            return;
        }
    }
}
