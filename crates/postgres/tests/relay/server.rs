//! A PostgreSQL server of a test's own, to which anything may be done.

use std::{
    env, fs,
    net::TcpListener,
    os::unix::{fs::chown, process::CommandExt},
    path::PathBuf,
    process::{Command, Stdio},
    sync::Arc,
};
use tempfile::TempDir;
use tidegate_core::Migrate;
use tidegate_postgres::Postgres;
use tokio_postgres::{Client, NoTls};

/// Names the directory with `initdb` and `pg_ctl`.
const PROGRAMS: &str = "TIDEGATE_TEST_POSTGRES_BIN";
/// Names who the server runs as, `uid:gid`, if that is not who runs the tests.
const USER: &str = "TIDEGATE_TEST_SERVER_USER";

/// A running server. It is ended when this is dropped.
pub struct Server {
    programs: PathBuf,
    user: Option<(u32, u32)>,
    directory: TempDir,
    port: u16,
    frozen: Vec<i32>,
}

impl Server {
    /// It accepts connections when this returns. `settings` are lines of its configuration.
    pub fn start(settings: &str) -> Self {
        let programs = env::var_os(PROGRAMS).unwrap_or_else(|| {
            panic!("{PROGRAMS} is not set: these tests start a server; use `cargo xtask test`")
        });
        let user = env::var(USER).ok().map(|user| {
            let (uid, gid) = user.split_once(':').expect("the servers' user is uid:gid");
            (uid.parse().unwrap(), gid.parse().unwrap())
        });
        let directory = TempDir::with_prefix("tidegate-").unwrap();
        if let Some((uid, gid)) = user {
            chown(directory.path(), Some(uid), Some(gid)).unwrap();
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let programs = programs.into();
        let server = Self { programs, user, directory, port, frozen: Vec::new() };
        server.create(settings);
        server.pg_ctl(&["start"]);
        server
    }

    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// A store on it, with its schema.
    pub async fn store(&self) -> Arc<Postgres> {
        let store = Postgres::connect(&self.url()).await.unwrap();
        store.migrate().await.unwrap();
        Arc::new(store)
    }

    pub async fn client(&self) -> Client {
        let (client, connection) = tokio_postgres::connect(&self.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    /// Stops without any farewell, as after a crash, and starts again.
    pub fn restart(&self) {
        self.pg_ctl(&["stop", "-m", "immediate"]);
        self.pg_ctl(&["start"]);
    }

    /// Closes all connections but one's own.
    pub async fn kill_backends(&self) {
        let sql = "select pg_terminate_backend(pid) from pg_stat_activity
            where backend_type = 'client backend' and pid <> pg_backend_pid()";
        self.client().await.batch_execute(sql).await.unwrap();
    }

    /// Nothing of it moves until it is thawed.
    pub async fn freeze(&mut self) {
        let client = self.client().await;
        let file = fs::read_to_string(self.directory.path().join("data/postmaster.pid")).unwrap();
        // The parent first: there are no new ones then. Who tells of the others is among them.
        self.stop_process(file.lines().next().unwrap().parse().unwrap());
        let rows = client.query("select pid from pg_stat_activity", &[]).await.unwrap();
        rows.iter().for_each(|row| self.stop_process(row.get(0)));
    }

    pub fn thaw(&mut self) {
        self.frozen.drain(..).for_each(|pid| signal("CONT", pid));
    }

    fn stop_process(&mut self, pid: i32) {
        self.frozen.push(pid);
        signal("STOP", pid);
    }

    fn create(&self, settings: &str) {
        let data = self.directory.path().join("data");
        let mut initdb = self.command("initdb");
        initdb.arg("-D").arg(&data).args(["-U", "postgres", "-A", "trust"]);
        finish(initdb.args(["-E", "UTF8", "--locale=C", "--no-sync"]));
        let socket = self.directory.path().display();
        // The machine does not fail, so that nothing has to reach its disk.
        let lines = format!(
            "listen_addresses = '127.0.0.1'\nport = {}\nunix_socket_directories = '{socket}'\n\
             fsync = off\n{settings}\n",
            self.port
        );
        let path = data.join("postgresql.conf");
        let defaults = fs::read_to_string(&path).unwrap();
        fs::write(path, defaults + &lines).unwrap();
    }

    fn pg_ctl(&self, args: &[&str]) {
        let (data, log) = (self.directory.path().join("data"), self.directory.path().join("log"));
        let mut pg_ctl = self.command("pg_ctl");
        pg_ctl.args(args).args(["-w", "-t", "30", "-D"]).arg(data);
        finish(pg_ctl.arg("-l").arg(log));
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.current_dir(self.directory.path()).stdout(Stdio::null());
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.thaw();
        let data = self.directory.path().join("data");
        if data.join("postmaster.pid").exists() {
            let mut stop = self.command("pg_ctl");
            let stop = stop.args(["stop", "-m", "immediate", "-w", "-D"]).arg(data);
            if !stop.status().is_ok_and(|status| status.success()) {
                eprintln!("the server in {} was left behind", self.directory.path().display());
            }
        }
    }
}

fn finish(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?}");
}

fn signal(name: &str, pid: i32) {
    // A process may have ended meanwhile.
    let _ = Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).status();
}
