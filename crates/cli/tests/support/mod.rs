//! The binary in a directory of its own.

#![allow(dead_code, reason = "not every test file uses all of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{self, Child, Command, Output, Stdio},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

/// Where a test works.
pub struct Place {
    directory: TempDir,
}

/// What a command said.
pub struct Said {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Place {
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    /// Every file and what is in it.
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let entries = fs::read_dir(self.directory.path()).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.map(|path| (path.clone(), fs::read(path).unwrap_or_default())).collect()
    }

    /// The binary with nothing inherited that could change what it does.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.args(args).current_dir(self.directory.path()).stdin(Stdio::null());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TIDEGATE_")) {
            command.env_remove(name);
        }
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

    pub fn spawn(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// Waits until a batch has settled some of its runs.
    pub fn wait_for_progress(&self, store: &str) {
        let list = ["batch", "list", "--json", "--store", store];
        wait_until("runs are settled", || {
            let listed: Value = serde_json::from_str(&self.tidegate(&list).stdout).ok()?;
            (listed[0]["completed"].as_u64()? > 0).then_some(())
        });
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().expect("it was not killed"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Said {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|_| panic!("{}", self.stderr))
    }
}

/// Sends a signal by its name.
pub fn signal(child: &Child, name: &str) {
    // The shell's own: a small system has no other.
    let status = Command::new("sh").args(["-c", &format!("kill -{name} {}", child.id())]).status();
    assert!(status.unwrap().success());
}

/// Polls until `found` finds something.
pub fn wait_until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A SQLite database that is not ours.
pub fn foreign_database(path: &Path) {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute_batch("CREATE TABLE somebody (elses INTEGER)").unwrap();
}

static MADE: AtomicUsize = AtomicUsize::new(0);

pub async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A new database, and its URL.
pub async fn database() -> String {
    let server = std::env::var("TIDEGATE_TEST_POSTGRES")
        .expect("set TIDEGATE_TEST_POSTGRES to a superuser's URL, or use `cargo xtask test`");
    let name = format!("tidegate_cli_{}_{}", process::id(), MADE.fetch_add(1, Relaxed));
    let client = connect(&server).await;
    client.batch_execute(&format!("create database {name}")).await.unwrap();
    let (base, _) = server.rsplit_once('/').unwrap();
    format!("{base}/{name}")
}
