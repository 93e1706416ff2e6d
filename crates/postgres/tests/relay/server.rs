//! A PostgreSQL server of a test's own, to which anything may be done.

use std::{
    env,
    ffi::OsStr,
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, chown},
        process::CommandExt,
    },
    path::PathBuf,
    process::Command,
    sync::Arc,
};
use tidegate_core::Migrate;
use tidegate_drill::postgres::{Cluster, Crash, Options};
use tidegate_postgres::Postgres;
use tokio_postgres::{Client, NoTls};

/// Names the directory with PostgreSQL's programs, if they are not where Debian puts them.
const PROGRAMS: &str = "TIDEGATE_TEST_POSTGRES_BIN";

/// A running server. It is ended when this is dropped.
pub struct Server {
    // Dropped first: what is stopped does not end.
    stopped: Stopped,
    pub cluster: Cluster,
}

impl Server {
    /// It accepts connections when this returns. `settings` are lines of its configuration.
    pub fn start(settings: &str) -> Self {
        let programs = env::var_os(PROGRAMS).map(PathBuf::from);
        let options = Options { programs: programs.as_deref(), settings, directory: None };
        Self { stopped: Stopped::default(), cluster: Cluster::start(options).unwrap() }
    }

    /// A store on it, with its schema.
    pub async fn store(&self) -> Arc<Postgres> {
        let store = Postgres::connect(&self.cluster.url()).await.unwrap();
        store.migrate().await.unwrap();
        Arc::new(store)
    }

    pub async fn client(&self) -> Client {
        let connected = tokio_postgres::connect(&self.cluster.url(), NoTls).await;
        let (client, connection) = connected.unwrap();
        tokio::spawn(connection);
        client
    }

    /// Stops without any farewell, as after a crash, and starts again.
    pub fn restart(&mut self) {
        self.cluster.crash(Crash::Immediate).unwrap();
        self.cluster.restart().unwrap();
    }

    /// Where its data is, in `data`, and its socket.
    #[allow(dead_code, reason = "not every test binary configures it")]
    pub fn directory(&self) -> PathBuf {
        self.cluster.guard().directory().join("server-1")
    }

    /// Writes a file that only the server can read, below its directory.
    #[allow(dead_code, reason = "not every test binary configures it")]
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let (path, owner) = (self.directory().join(name), self.directory().metadata().unwrap());
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
        path
    }

    /// A program that runs as the server does, in its directory.
    #[allow(dead_code, reason = "not every test binary starts others beside it")]
    pub fn beside(&self, program: &OsStr) -> Command {
        let owner = self.directory().metadata().unwrap();
        let mut command = Command::new(program);
        command.current_dir(self.directory()).uid(owner.uid()).gid(owner.gid());
        command
    }

    /// The backends of this application stop, while they do nothing, and the rest of the server goes on. Returns how
    /// many.
    #[allow(dead_code, reason = "not every test binary stops some")]
    pub async fn stop_backends(&mut self, application: &str) -> usize {
        let client = self.client().await;
        let sql = "select pid from pg_stat_activity where application_name = $1 and state = $2";
        loop {
            for row in client.query(sql, &[&application, &"idle"]).await.unwrap() {
                self.stopped.stop(row.get(0));
            }
            let busy = client.query(sql, &[&application, &"active"]).await.unwrap();
            if busy.is_empty() {
                return self.stopped.0.len();
            }
            // One that was stopped amid a statement holds locks for ever: this is not about them.
            self.stopped.go_on();
        }
    }

    /// Backends that were stopped go on.
    #[allow(dead_code, reason = "not every test binary stops some")]
    pub fn resume_backends(&mut self) {
        self.stopped.go_on();
    }
}

/// Processes that were stopped. They go on when this is dropped.
#[derive(Default)]
struct Stopped(Vec<i32>);

impl Stopped {
    fn stop(&mut self, pid: i32) {
        self.0.push(pid);
        signal("STOP", pid);
    }

    fn go_on(&mut self) {
        self.0.drain(..).for_each(|pid| signal("CONT", pid));
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.go_on();
    }
}

fn signal(name: &str, pid: i32) {
    // A process may have ended meanwhile.
    let _ = Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).status();
}
