//! A private PostgreSQL server, and a standby, to which anything may be done: they crash, they freeze, the standby
//! lags and takes over.
//!
//! All calls block until what they say is done. Nothing is left behind: servers end and their data is removed when
//! the [`Cluster`] is dropped, and when the process ends without dropping it.
//!
//! ```no_run
//! use tidegate_drill::postgres::{Cluster, Crash, Options};
//!
//! # fn main() -> Result<(), tidegate_drill::postgres::Failed> {
//! let settings = "synchronous_commit = off\nwal_writer_delay = 10s";
//! let mut cluster = Cluster::start(Options { settings, ..Options::default() })?;
//! // … connect to cluster.url(), write …
//! cluster.crash(Crash::Immediate)?;
//! cluster.restart()?;
//!
//! cluster.add_standby()?;
//! cluster.hold_standby()?;
//! // … what is written from here on does not reach the standby …
//! cluster.fail_over(Crash::Kill)?;
//! // … cluster.url() now leads to what was the standby …
//! # Ok(())
//! # }
//! ```

mod port;
mod programs;
mod server;
mod user;

pub use programs::Programs;
pub use user::User;

use crate::guard::Guard;
use rustix::process::Signal;
use server::{Place, Server};
use std::{
    io,
    path::Path,
    thread,
    time::{Duration, Instant},
};

/// Most that it may take until a standby has all that its primary has.
const CATCH_UP: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

/// Of every server here: the machine does not fail, so that nothing has to reach its disk.
const SETTINGS: &str = "fsync = off\nmax_connections = 200";

/// Something could not be done to a server. The text says what, and why.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Failed(pub(crate) String);

impl Failed {
    fn new(what: &str, error: io::Error) -> Self {
        Self(format!("{what}: {error}"))
    }
}

/// How a server ends without writing down what it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// All its processes stop at once, as by `pg_ctl stop -m immediate`.
    Immediate,
    /// SIGKILL to the process that started the others; they end when they notice that.
    Kill,
}

impl Crash {
    fn signal(self) -> Signal {
        match self {
            Self::Immediate => Signal::QUIT,
            Self::Kill => Signal::KILL,
        }
    }
}

/// How a cluster is made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// The directory with PostgreSQL's programs; by default the newest that Debian's package has installed.
    pub programs: Option<&'a Path>,
    /// Lines of its configuration.
    pub settings: &'a str,
    /// Where the data is, and stays; by default in a temporary directory that is removed.
    pub directory: Option<&'a Path>,
}

/// A primary, and perhaps a standby.
#[derive(Debug)]
pub struct Cluster {
    primary: Server,
    standby: Option<Server>,
    frozen: Vec<i32>,
    place: Place,
    /// Servers so far.
    made: usize,
    // Dropped last: it ends what is left and removes the data.
    guard: Guard,
}

impl Cluster {
    /// Makes a cluster without a standby. It accepts connections when this returns.
    pub fn start(options: Options<'_>) -> Result<Self, Failed> {
        let programs = Programs::find(options.programs)?;
        let user = User::for_servers()?;
        let guard = options.directory.map_or_else(Guard::temporary, Guard::keeping);
        let guard = guard.map_err(|error| Failed::new("cannot make a directory", error))?;
        user.own(guard.directory())?;
        let (group, directory) = (guard.group(), guard.directory().to_owned());
        let place = Place { programs, user, group, directory };
        let settings = format!("{SETTINGS}\n{}", options.settings);
        let mut primary = Server::create(numbered(&place, 1), port::free()?, &settings)?;
        primary.start()?;
        Ok(Self { primary, standby: None, frozen: Vec::new(), place, made: 1, guard })
    }

    /// The address of the primary; it stays the same after a failover. Connections are a superuser's.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.primary.port())
    }

    /// The port of the primary; it stays the same after a failover.
    pub fn port(&self) -> u16 {
        self.primary.port()
    }

    /// The directory and the process group that end with this cluster.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// The first column of the first row of a query on the primary, as text.
    pub fn query(&self, sql: &str) -> Result<String, Failed> {
        self.primary.query(sql)
    }

    /// Ends the primary without any farewell: what it has not flushed is gone. It is down when this returns.
    pub fn crash(&mut self, how: Crash) -> Result<(), Failed> {
        self.primary.end(how.signal())
    }

    /// Starts the primary again, at the same address. It accepts connections when this returns.
    pub fn restart(&mut self) -> Result<(), Failed> {
        self.primary.start()
    }

    /// Closes all connections to the primary but the standby's.
    pub fn kill_backends(&self) -> Result<(), Failed> {
        let sql = "select count(pg_terminate_backend(pid)) from pg_stat_activity
            where backend_type = 'client backend' and pid <> pg_backend_pid()";
        self.primary.query(sql).map(drop)
    }

    /// Stops all processes of the primary by SIGSTOP: connections stay open, and nothing moves.
    pub fn freeze(&mut self) -> Result<(), Failed> {
        for pid in self.primary.processes()? {
            // A process may have ended since it was listed.
            if server::send(pid, Signal::STOP).is_ok() {
                self.frozen.push(pid);
            }
        }
        Ok(())
    }

    /// Lets the processes of a frozen primary go on.
    pub fn thaw(&mut self) {
        for pid in self.frozen.drain(..) {
            let _ = server::send(pid, Signal::CONT);
        }
    }

    /// Whether there is a standby.
    pub fn has_standby(&self) -> bool {
        self.standby.is_some()
    }

    /// Makes an asynchronous standby of the primary, in place of the one that there may be. It receives what the
    /// primary flushes when this returns.
    pub fn add_standby(&mut self) -> Result<(), Failed> {
        if let Some(old) = self.standby.take() {
            old.remove()?;
        }
        self.made += 1;
        let place = numbered(&self.place, self.made);
        let mut standby = Server::copy_of(&self.primary, place, port::free()?)?;
        standby.start()?;
        let receives = || Ok(standby.query(RECEIVES)? == "1");
        until("the standby receives", receives)?;
        self.standby = Some(standby);
        Ok(())
    }

    /// Cuts the standby off: what the primary writes from now on does not reach it.
    pub fn hold_standby(&mut self) -> Result<(), Failed> {
        let standby = self.a_standby()?;
        standby.configure("primary_conninfo = ''")?;
        until("the standby receives nothing more", || Ok(standby.query(RECEIVERS)? == "0"))
    }

    /// Ends the primary without any farewell and makes the standby the primary, at the same address. The standby is
    /// reachable there before it accepts writes; it accepts them when this returns. The old primary's data is gone.
    pub fn fail_over(&mut self, how: Crash) -> Result<(), Failed> {
        self.a_standby()?;
        self.primary.end(how.signal())?;
        let Some(mut standby) = self.standby.take() else { return Ok(()) };
        standby.end(Signal::INT)?;
        standby.move_to(self.primary.port());
        standby.configure("primary_conninfo = ''")?;
        standby.start()?;
        standby.promote()?;
        std::mem::replace(&mut self.primary, standby).remove()
    }

    fn a_standby(&self) -> Result<&Server, Failed> {
        self.standby.as_ref().ok_or_else(|| Failed("there is no standby".to_owned()))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.thaw();
    }
}

const RECEIVES: &str = "select count(*) from pg_stat_wal_receiver where status = 'streaming'";
const RECEIVERS: &str = "select count(*) from pg_stat_wal_receiver";

fn numbered(place: &Place, number: usize) -> Place {
    Place { directory: place.directory.join(format!("server-{number}")), ..place.clone() }
}

fn until(what: &str, mut is_so: impl FnMut() -> Result<bool, Failed>) -> Result<(), Failed> {
    let start = Instant::now();
    while !is_so()? {
        if start.elapsed() > CATCH_UP {
            return Err(Failed(format!("waited in vain until {what}")));
        }
        thread::sleep(LOOK);
    }
    Ok(())
}
