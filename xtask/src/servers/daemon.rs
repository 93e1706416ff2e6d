//! A server that is one process of ours.

use super::log_of;
use crate::process::interrupted;
use anyhow::{Context, Result, bail};
use std::{
    fs::File,
    net::{SocketAddr, TcpStream},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// A process that listens, or soon will. It is killed when this is dropped: no test reads its data
/// again, so there is nothing that a gentler end would save.
pub struct Daemon {
    name: &'static str,
    process: Child,
    port: u16,
    log: PathBuf,
}

impl Daemon {
    /// Starts a process that will listen on `port` of loopback. What it says goes to a log in
    /// `directory`.
    pub fn launch(
        name: &'static str,
        command: &mut Command,
        directory: &Path,
        port: u16,
    ) -> Result<Self> {
        let log = directory.join(format!("{name}.log"));
        let output =
            File::create(&log).with_context(|| format!("could not create the log of {name}"))?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).process_group(0);
        let process = command.spawn().with_context(|| format!("could not start {name}"))?;
        Ok(Self { name, process, port, log })
    }

    /// Returns when it accepts connections.
    pub fn await_listening(&mut self, deadline: Duration) -> Result<()> {
        self.poll(deadline)
            .with_context(|| log_of(&self.log))
            .with_context(|| format!("could not start {}", self.name))
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    fn poll(&mut self, deadline: Duration) -> Result<()> {
        let address = SocketAddr::from(([127, 0, 0, 1], self.port));
        let start = Instant::now();
        while TcpStream::connect_timeout(&address, deadline).is_err() {
            if let Some(status) = self.process.try_wait()? {
                bail!("it gave {status}");
            }
            if interrupted() || start.elapsed() > deadline {
                bail!("it does not listen after {:.1} s", start.elapsed().as_secs_f64());
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Err(error) = self.process.kill().and_then(|()| self.process.wait()) {
            eprintln!("could not stop {}: {error}", self.name);
        }
    }
}
