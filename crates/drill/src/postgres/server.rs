//! One PostgreSQL server: a data directory, and the process that serves it while it is up.

use super::{Failed, Programs, User};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs::{self, OpenOptions},
    io::Write,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Most that starting, stopping, promoting and copying may take. Recovery on a busy machine takes seconds.
const DEADLINE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(5);

/// Where the data is, who serves it, and with which programs.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub programs: Programs,
    pub user: User,
    /// Processes are started in this group.
    pub group: i32,
    pub directory: PathBuf,
}

/// A server, up or down.
#[derive(Debug)]
pub(super) struct Server {
    place: Place,
    port: u16,
    process: Option<Child>,
}

impl Server {
    /// An empty server that is down. `settings` are lines of its configuration.
    pub fn create(place: Place, port: u16, settings: &str) -> Result<Self, Failed> {
        let server = Self { place, port, process: None };
        server.make_directory()?;
        let mut initdb = server.command("initdb");
        initdb.arg("-D").arg(server.data()).args(["-U", "postgres", "-A", "trust"]);
        finish(initdb.args(["-E", "UTF8", "--locale=C", "--no-sync"]))?;
        server.configure(settings)?;
        Ok(server)
    }

    /// A standby that is down, as a copy of a server that is up.
    pub fn copy_of(primary: &Self, place: Place, port: u16) -> Result<Self, Failed> {
        let server = Self { place, port, process: None };
        server.make_directory()?;
        let mut copy = server.command("pg_basebackup");
        copy.args(["-h", "127.0.0.1", "-U", "postgres", "-p", &primary.port.to_string()]);
        copy.args(["-X", "stream", "-c", "fast", "--no-sync", "-R", "-D"]).arg(server.data());
        finish(&mut copy)?;
        Ok(server)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn is_up(&self) -> bool {
        self.process.is_some()
    }

    /// It accepts connections when this returns; a standby those that read.
    pub fn start(&mut self) -> Result<(), Failed> {
        let start = Instant::now();
        loop {
            let mut process = self.launch()?;
            match self.await_ready(&mut process, start)? {
                true => {
                    self.process = Some(process);
                    return Ok(());
                }
                // Processes of a killed server may hold its shared memory for some time.
                false if start.elapsed() < DEADLINE => thread::sleep(LOOK * 10),
                false => return Err(self.said("PostgreSQL does not start")),
            }
        }
    }

    /// Sends a signal to the process that started all others of this server.
    pub fn signal(&self, signal: Signal) -> Result<(), Failed> {
        let process = self.process.as_ref().ok_or_else(|| self.said("PostgreSQL is down"))?;
        send(process.id().cast_signed(), signal)
    }

    /// Ends it by a signal. It is down when this returns.
    pub fn end(&mut self, signal: Signal) -> Result<(), Failed> {
        self.signal(signal)?;
        let Some(mut process) = self.process.take() else { return Ok(()) };
        let start = Instant::now();
        while !has_ended(&mut process)? {
            if start.elapsed() > DEADLINE {
                return Err(self.said("PostgreSQL does not stop"));
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// From its next start on it listens there.
    pub fn move_to(&mut self, port: u16) {
        self.port = port;
    }

    /// Makes a standby a primary. It accepts writes when this returns.
    pub fn promote(&self) -> Result<(), Failed> {
        let mut promote = self.command("pg_ctl");
        promote.arg("promote").arg("-D").arg(self.data());
        finish(promote.args(["-w", "-t", &DEADLINE.as_secs().to_string()]))
    }

    /// Adds lines to its configuration, and makes it read them if it is up.
    pub fn configure(&self, settings: &str) -> Result<(), Failed> {
        // This file is read last.
        let path = self.data().join("postgresql.auto.conf");
        let file = OpenOptions::new().append(true).open(&path);
        let written = file.and_then(|mut file| writeln!(file, "{settings}"));
        written.map_err(|error| Failed::new("cannot configure PostgreSQL", error))?;
        if self.is_up() { self.signal(Signal::HUP) } else { Ok(()) }
    }

    /// The first column of the first row of a query, as text.
    pub fn query(&self, sql: &str) -> Result<String, Failed> {
        let mut psql = self.command("psql");
        psql.args(["-X", "-A", "-t", "-q", "-h", "127.0.0.1", "-U", "postgres", "-d", "postgres"]);
        psql.args(["-p", &self.port.to_string(), "-c", sql]);
        Ok(output(&mut psql)?.trim().to_owned())
    }

    /// The processes of a server that is up, the one that started the others first.
    pub fn processes(&self) -> Result<Vec<i32>, Failed> {
        let first = self.process.as_ref().map(|process| process.id().cast_signed());
        let others = self.query("select string_agg(pid::text, ' ') from pg_stat_activity")?;
        let others = others.split_whitespace().filter_map(|pid| pid.parse().ok());
        Ok(first.into_iter().chain(others).collect())
    }

    /// Ends it and removes its data.
    pub fn remove(mut self) -> Result<(), Failed> {
        if self.is_up() {
            self.end(Signal::QUIT)?;
        }
        let removed = fs::remove_dir_all(&self.place.directory);
        removed.map_err(|error| Failed::new("cannot remove the data of a server", error))
    }

    fn make_directory(&self) -> Result<(), Failed> {
        let directory = &self.place.directory;
        let made = fs::create_dir(directory);
        made.map_err(|error| {
            Failed::new(&format!("cannot create {}", directory.display()), error)
        })?;
        self.place.user.own(directory)
    }

    fn launch(&self) -> Result<Child, Failed> {
        let log = OpenOptions::new().create(true).append(true).open(self.log());
        let log = log.and_then(|log| Ok((log.try_clone()?, log)));
        let (stdout, stderr) =
            log.map_err(|error| Failed::new("cannot open the log of PostgreSQL", error))?;
        let mut postgres = self.command("postgres");
        postgres.arg("-D").arg(self.data()).stdout(stdout).stderr(stderr);
        let socket = format!("unix_socket_directories={}", self.place.directory.display());
        let port = format!("port={}", self.port);
        postgres.args(["-c", "listen_addresses=127.0.0.1", "-c", &socket, "-c", &port]);
        postgres.process_group(self.place.group);
        postgres.spawn().map_err(|error| Failed::new("cannot start PostgreSQL", error))
    }

    /// Returns false if the process ended early.
    fn await_ready(&self, process: &mut Child, start: Instant) -> Result<bool, Failed> {
        let pid = process.id().to_string();
        loop {
            let file = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
            let lines: Vec<&str> = file.lines().map(str::trim).collect();
            let is_ready = matches!(lines.get(7), Some(&("ready" | "standby")));
            if is_ready && lines.first() == Some(&pid.as_str()) {
                return Ok(true);
            }
            if has_ended(process)? {
                return Ok(false);
            }
            if start.elapsed() > DEADLINE {
                let _ = process.kill().and_then(|()| process.wait());
                return Err(self.said("PostgreSQL does not become ready"));
            }
            thread::sleep(LOOK);
        }
    }

    fn data(&self) -> PathBuf {
        self.place.directory.join("data")
    }

    fn log(&self) -> PathBuf {
        self.place.directory.join("log")
    }

    fn command(&self, program: &str) -> Command {
        let Place { programs, user, group, directory } = &self.place;
        let mut command = user.command(programs.path(program), directory);
        command.stdin(Stdio::null()).process_group(*group);
        command
    }

    fn said(&self, problem: &str) -> Failed {
        Failed(format!("{problem}: {}", last_lines(&self.log())))
    }
}

/// Sends a signal to a process.
pub(super) fn send(pid: i32, signal: Signal) -> Result<(), Failed> {
    let pid = Pid::from_raw(pid).ok_or_else(|| Failed("0 is not a process".to_owned()))?;
    kill_process(pid, signal)
        .map_err(|error| Failed::new("cannot send a signal to PostgreSQL", error.into()))
}

fn has_ended(process: &mut Child) -> Result<bool, Failed> {
    let ended = process.try_wait();
    ended
        .map(|status| status.is_some())
        .map_err(|error| Failed::new("cannot wait for PostgreSQL", error))
}

fn finish(command: &mut Command) -> Result<(), Failed> {
    output(command).map(drop)
}

fn output(command: &mut Command) -> Result<String, Failed> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| Failed::new(&format!("cannot start {name}"), error))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failed(format!("{name} ended with {}: {}", output.status, said.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The end of a log: enough to see why a server gave up.
fn last_lines(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(5)..].join("; ")
}
