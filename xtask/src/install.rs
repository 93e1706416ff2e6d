//! Finds the programs that the tests need, and installs them where that is possible.

mod dynoxide;
mod moto;
mod nats;
mod python;

use crate::process::{cargo, find_on_path, path_directories, run_quietly};
use anyhow::{Context, Result};
use std::{
    fmt,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Command,
};

/// The oldest release that the PostgreSQL store promises to work with.
const OLDEST_POSTGRES: u32 = 15;

/// Debian keeps each release's programs here, outside of PATH.
const DEBIAN_POSTGRES: &str = "/usr/lib/postgresql";

/// Debian puts pgbouncer here, which is not in every user's PATH.
const DEBIAN_SBIN: &str = "/usr/sbin";

/// The script that runs RabbitMQ as whoever starts it. The one in PATH changes the user.
const DEBIAN_RABBITMQ: &str = "/usr/lib/rabbitmq/bin";

/// Where the programs of the servers are.
pub struct Tools {
    /// The directory with `initdb`, `pg_ctl`, `postgres` and `psql`.
    pub postgres: PathBuf,
    /// The program itself, as all that follow.
    pub pgbouncer: PathBuf,
    pub nats: PathBuf,
    pub rabbitmq: PathBuf,
    /// What Erlang's nodes find each other by.
    pub epmd: PathBuf,
    pub redis: PathBuf,
    /// What plays DynamoDB.
    pub dynoxide: PathBuf,
    /// A Python that has what plays SQS and SNS.
    pub moto: PathBuf,
    /// One that has a driver for PostgreSQL.
    python: PathBuf,
}

impl Tools {
    /// How the tests find programs that they start themselves.
    pub fn environment(&self) -> [(&'static str, String); 4] {
        [
            ("TIDEGATE_TEST_POSTGRES_BIN", self.postgres.display().to_string()),
            ("TIDEGATE_TEST_PGBOUNCER_BIN", self.pgbouncer.display().to_string()),
            ("TIDEGATE_TEST_PSQL", self.postgres.join("psql").display().to_string()),
            ("TIDEGATE_TEST_PYTHON", self.python.display().to_string()),
        ]
    }
}

/// A program that is not there: what it is, who has it, where we looked.
struct Missing {
    program: String,
    package: &'static str,
    looked: String,
}

/// Returns programs that are there; on failure says what is missing and how to get it.
pub fn find_or_install() -> Result<Tools> {
    let missing = match find(python::find) {
        Ok(tools) => return Ok(tools),
        Err(missing) => missing,
    };
    if is_root()? && find_on_path("apt-get").is_some() {
        install_what_there_is(packages(&missing))?;
    }
    find(python::find_or_make).map_err(|missing| anyhow::anyhow!(explain(&missing)))
}

fn find(find_python: fn() -> Result<PathBuf, Missing>) -> Result<Tools, Vec<Missing>> {
    let mut missing = Vec::new();
    let mut found = |program: Result<PathBuf, Missing>| {
        program.map_err(|program| missing.push(program)).unwrap_or_default()
    };
    found(find_program(python::PYTHON, python::PYTHON, None));
    // The Kafka client is built from C sources.
    found(find_program("make", "make", None));
    found(find_program("g++", "g++", None));
    let tools = Tools {
        postgres: found(find_postgres()),
        pgbouncer: found(find_program("pgbouncer", "pgbouncer", Some(DEBIAN_SBIN))),
        nats: found(nats::find_or_download()),
        rabbitmq: found(find_in(DEBIAN_RABBITMQ, "rabbitmq-server", "rabbitmq-server")),
        epmd: found(find_program("epmd", "rabbitmq-server", None)),
        redis: found(find_program("redis-server", "redis-server", None)),
        dynoxide: found(dynoxide::find_or_download()),
        moto: found(moto::find_or_download()),
        python: found(find_python()),
    };
    if missing.is_empty() { Ok(tools) } else { Err(missing) }
}

/// A program in PATH, or in one more directory.
fn find_program(
    name: &str,
    package: &'static str,
    elsewhere: Option<&str>,
) -> Result<PathBuf, Missing> {
    let elsewhere = elsewhere.map(|directory| find_in(directory, name, package));
    match (find_on_path(name), elsewhere) {
        (Some(path), _) => Ok(path),
        (None, Some(found)) => {
            found.map_err(|it| Missing { looked: "PATH and ".to_owned() + &it.looked, ..it })
        }
        (None, None) => Err(Missing { program: name.into(), package, looked: "PATH".into() }),
    }
}

fn find_in(directory: &str, name: &str, package: &'static str) -> Result<PathBuf, Missing> {
    let path = Path::new(directory).join(name);
    let looked = directory.into();
    if path.is_file() { Ok(path) } else { Err(Missing { program: name.into(), package, looked }) }
}

/// Makes sure that the parts of Rust are there which not every installation has.
pub fn components() -> Result<()> {
    for (command, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if run_quietly(cargo().args([command, "--version"])).is_ok() {
            continue;
        }
        eprintln!("installing {component} with rustup");
        run_quietly(Command::new("rustup").args(["component", "add", component]))
            .with_context(|| format!("`cargo {command}` is missing; install {component}"))?;
    }
    Ok(())
}

fn find_postgres() -> Result<PathBuf, Missing> {
    let mut too_old = String::new();
    for dir in path_directories().into_iter().chain(debian_postgres()) {
        match postgres_release(&dir) {
            Some(release) if release >= OLDEST_POSTGRES => return Ok(dir),
            Some(release) => too_old += &format!("; {} has {release}", dir.display()),
            None => {}
        }
    }
    Err(Missing {
        program: format!("PostgreSQL {OLDEST_POSTGRES} or newer (initdb, pg_ctl, postgres, psql)"),
        package: "postgresql",
        looked: format!("PATH and {DEBIAN_POSTGRES}/*/bin{too_old}"),
    })
}

/// The newest release first.
fn debian_postgres() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(DEBIAN_POSTGRES).into_iter().flatten().flatten();
    let release = |name: std::ffi::OsString| name.to_str()?.parse::<u32>().ok();
    let mut releases: Vec<u32> = entries.filter_map(|entry| release(entry.file_name())).collect();
    releases.sort_unstable_by(|a, b| b.cmp(a));
    releases.iter().map(|r| Path::new(DEBIAN_POSTGRES).join(r.to_string()).join("bin")).collect()
}

/// The release of the server in this directory, if all the programs that we use are there.
fn postgres_release(dir: &Path) -> Option<u32> {
    const PROGRAMS: [&str; 4] = ["initdb", "pg_ctl", "postgres", "psql"];
    let complete = PROGRAMS.iter().all(|name| dir.join(name).is_file());
    let version = complete.then(|| run_quietly(Command::new(dir.join("postgres")).arg("-V")))?;
    numbers(&version.ok()?).first().copied()
}

/// The numbers of the first word of `text` that begins with one: `[15, 14]` in `postgres 15.14`.
pub fn numbers(text: &str) -> Vec<u32> {
    let version =
        text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    let parts = version.unwrap_or_default().split(|c: char| !c.is_ascii_digit());
    parts.map_while(|part| part.parse().ok()).collect()
}

/// All of them, or else all but the driver: old releases do not have it, and pip does.
fn install_what_there_is(mut packages: Vec<&str>) -> Result<()> {
    let outcome = install(&packages);
    let all = packages.len();
    packages.retain(|package| *package != python::DEBIAN_DRIVER);
    match outcome {
        Err(_) if packages.is_empty() => Ok(()),
        Err(_) if packages.len() < all => install(&packages),
        outcome => outcome,
    }
}

fn install(packages: &[&str]) -> Result<()> {
    eprintln!("installing {} with apt-get", packages.join(" and "));
    let apt = || {
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive").arg("-q");
        apt
    };
    run_quietly(apt().arg("update")).context("could not read the package lists")?;
    run_quietly(apt().args(["install", "-y", "--no-install-recommends"]).args(packages))
        .with_context(|| format!("could not install {}", packages.join(" and ")))?;
    Ok(())
}

/// What to install, each once.
fn packages(missing: &[Missing]) -> Vec<&'static str> {
    let mut packages: Vec<&str> = missing.iter().map(|missing| missing.package).collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

/// What is downloaded is kept in the build directory, beside what cargo keeps there.
fn tools_directory() -> Result<PathBuf> {
    let us = std::env::current_exe().context("could not find the build directory")?;
    let build = us.ancestors().nth(2).context("could not find the build directory")?;
    Ok(build.join("tools"))
}

/// What we create belongs to us; so its owner is who we are.
pub fn is_root() -> Result<bool> {
    let file = tempfile::tempfile().context("could not create a temporary file")?;
    Ok(file.metadata().context("could not look at a temporary file")?.uid() == 0)
}

fn explain(missing: &[Missing]) -> String {
    let packages = packages(missing);
    let lines: String = missing.iter().map(|missing| format!("\n  {missing}")).collect();
    format!(
        "programs that the tests need are missing:{lines}\n\
         install them with your package manager; on Debian or Ubuntu, as root:\n  \
         apt-get install {}",
        packages.join(" ")
    )
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: looked in {}", self.program, self.looked)
    }
}
