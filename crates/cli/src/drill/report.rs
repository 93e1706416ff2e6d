//! What both drills report: where, which faults, which laws are broken.

use crate::{app::App, args::drill::FaultFlags, exit::Exit, out, show::number};
use anyhow::Result;
use serde::Serialize;
use std::{
    fmt::{self, Display, Write},
    time::Duration,
};
use tidegate_drill::history::Moment;

/// Where a drill took place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StoreKind {
    Sqlite,
    /// On a server that the user named.
    Postgres,
    PrivatePostgres,
}

impl Display for StoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
            Self::PrivatePostgres => "a private PostgreSQL server, synchronous_commit = off",
        })
    }
}

/// How often each fault was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Made {
    pub kills: u64,
    pub stops: u64,
    pub restarts: u64,
    pub crashes: u64,
    pub failovers: u64,
}

/// What both drills say.
#[derive(Debug, Serialize)]
pub struct Scene {
    pub store: StoreKind,
    pub processes: u8,
    pub seed: u64,
    pub seconds: u32,
    pub lease_ms: u64,
    pub faults: Made,
    /// Processes that ended without being asked to.
    pub ended_by_themselves: Vec<String>,
    /// Processes that could not start because the server was away; others were started in their place.
    pub could_not_start: u64,
}

impl Scene {
    pub fn new(store: StoreKind, processes: u8, flags: &FaultFlags) -> Self {
        Self {
            store,
            processes,
            seed: flags.seed,
            seconds: flags.seconds,
            lease_ms: flags.lease.0.as_millis() as u64,
            faults: Made::default(),
            ended_by_themselves: Vec::new(),
            could_not_start: 0,
        }
    }

    /// Longest that work may stand still while no server fault is on.
    pub fn most_stall_ms(&self) -> u64 {
        self.lease_ms + 2_000
    }
}

impl Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Made { kills, stops, restarts, crashes, failovers } = self.faults;
        line(f, "where", format_args!("{}", self.store))?;
        line(
            f,
            "how",
            format_args!(
                "{} processes for {} s, lease {} s, seed {}",
                self.processes,
                self.seconds,
                self.lease_ms as f64 / 1e3,
                self.seed
            ),
        )?;
        line(
            f,
            "faults",
            format_args!(
                "{kills} kills, {stops} stops, {restarts} restarts; {crashes} crashes of the server, \
                 {failovers} failovers"
            ),
        )?;
        match self.could_not_start {
            0 => Ok(()),
            starts => line(f, "starts", format_args!("{starts} failed while the server was away")),
        }
    }
}

/// How long a fault may show after its end: until leases have expired and connections are made anew.
pub fn aftermath(lease: Duration) -> Moment {
    (lease + Duration::from_secs(2)).as_micros() as Moment
}

/// A line of a report.
pub fn line(f: &mut fmt::Formatter<'_>, name: &str, text: fmt::Arguments<'_>) -> fmt::Result {
    writeln!(f, "{name:<14}{text}")
}

/// Seconds with one decimal.
pub fn seconds(ms: u64) -> String {
    format!("{:.1} s", ms as f64 / 1e3)
}

/// Laws that are broken, in words.
#[derive(Debug, Default)]
pub struct Laws(Vec<String>);

impl Laws {
    /// A number that must be zero.
    pub fn none(&mut self, count: u64, what: &str) {
        if count > 0 {
            self.0.push(format!("{} {what}", number::count(count)));
        }
    }

    pub fn check(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.0.push(otherwise());
        }
    }

    pub fn broken(self) -> Vec<String> {
        self.0
    }
}

/// Prints a report, and says by the exit code whether all laws hold.
pub fn print(
    app: &App,
    report: &(impl Serialize + Display),
    broken: &[String],
    examples: &[String],
) -> Result<Exit> {
    if app.json {
        out::json(report)?;
    } else {
        let mut text = report.to_string();
        for example in examples {
            let _ = writeln!(text, "  {example}");
        }
        match broken {
            [] => text.push_str("all laws hold\n"),
            broken => {
                for law in broken {
                    let _ = writeln!(text, "BROKEN        {law}");
                }
            }
        }
        out::data(&text)?;
    }
    Ok(if broken.is_empty() { Exit::Done } else { Exit::No })
}
