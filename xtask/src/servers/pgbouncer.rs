//! pgbouncer in transaction mode without prepared statements: the harshest pooler that a store
//! must work behind.

use super::{free_port, log_of, user::User};
use crate::{
    install::numbers,
    process::{interrupted, run_quietly},
};
use anyhow::{Context, Result, bail};
use std::{
    fs::{self, File},
    net::{SocketAddr, TcpStream},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command},
    thread,
    time::{Duration, Instant},
};

/// It starts within milliseconds; more is a fault.
const START_DEADLINE: Duration = Duration::from_secs(10);

/// A running pooler. It is stopped when this is dropped.
pub struct Pgbouncer {
    process: Child,
    port: u16,
}

impl Pgbouncer {
    /// Starts a pooler in front of the server on `postgres_port`; it accepts connections when this
    /// returns.
    pub fn start(program: &Path, directory: &Path, postgres_port: u16, user: User) -> Result<Self> {
        let port = free_port()?;
        let config = directory.join("pgbouncer.ini");
        let users = directory.join("pgbouncer.users");
        let version = numbers(&run_quietly(Command::new(program).arg("--version"))?);
        fs::write(&users, "\"postgres\" \"\"\n")
            .and_then(|()| fs::write(&config, settings(port, postgres_port, &version)))
            .context("could not configure pgbouncer")?;
        let log = directory.join("pgbouncer.log");
        let output = File::create(&log).context("could not create the log of pgbouncer")?;
        let mut command = user.command(program, directory);
        command.arg(&config).stdout(output.try_clone()?).stderr(output).process_group(0);
        let process = command.spawn().context("could not start pgbouncer")?;
        let mut pooler = Self { process, port };
        pooler
            .await_listening()
            .with_context(|| log_of(&log))
            .context("could not start pgbouncer")?;
        Ok(pooler)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    fn await_listening(&mut self) -> Result<()> {
        let address = SocketAddr::from(([127, 0, 0, 1], self.port));
        let start = Instant::now();
        while TcpStream::connect_timeout(&address, START_DEADLINE).is_err() {
            if let Some(status) = self.process.try_wait()? {
                bail!("it gave {status}");
            }
            if interrupted() || start.elapsed() > START_DEADLINE {
                bail!("it does not listen after {:.1} s", start.elapsed().as_secs_f64());
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Pgbouncer {
    fn drop(&mut self) {
        // It keeps nothing that a gentler end would save.
        if let Err(error) = self.process.kill().and_then(|()| self.process.wait()) {
            eprintln!("could not stop pgbouncer: {error}");
        }
    }
}

/// Idle connections are given up soon: each test has its own database, and together they would
/// use up the server's connections.
fn settings(port: u16, postgres_port: u16, version: &[u32]) -> String {
    // Older releases never keep prepared statements and refuse the setting.
    let prepared = if version >= [1, 21].as_slice() { "max_prepared_statements = 0\n" } else { "" };
    format!(
        "[databases]\n\
         * = host=127.0.0.1 port={postgres_port}\n\
         [pgbouncer]\n\
         listen_addr = 127.0.0.1\n\
         listen_port = {port}\n\
         unix_socket_dir =\n\
         auth_type = trust\n\
         auth_file = pgbouncer.users\n\
         pool_mode = transaction\n\
         {prepared}\
         ignore_startup_parameters = extra_float_digits,options\n\
         max_client_conn = 500\n\
         default_pool_size = 20\n\
         server_idle_timeout = 5\n\
         autodb_idle_timeout = 5\n"
    )
}
