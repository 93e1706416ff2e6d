//! Finds the programs that the tests need, and installs them where that is possible.

use crate::process::{cargo, find_on_path, path_directories, run_quietly};
use anyhow::{Context, Result, bail};
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

/// What the tests of programs as workloads are written in.
const PYTHON: &str = "python3";

/// Where the programs of the servers are.
pub struct Tools {
    /// The directory with `initdb`, `pg_ctl` and `postgres`.
    pub postgres: PathBuf,
    /// The program itself.
    pub pgbouncer: PathBuf,
}

/// A program that is not there: what it is, who has it, where we looked.
struct Missing {
    program: String,
    package: &'static str,
    looked: String,
}

/// Returns programs that are there; on failure says what is missing and how to get it.
pub fn find_or_install() -> Result<Tools> {
    let missing = match find() {
        Ok(tools) => return Ok(tools),
        Err(missing) => missing,
    };
    if !is_root()? || find_on_path("apt-get").is_none() {
        bail!(explain(&missing));
    }
    install(&missing)?;
    find().map_err(|missing| anyhow::anyhow!(explain(&missing)))
}

fn find() -> Result<Tools, Vec<Missing>> {
    match (find_postgres(), find_pgbouncer(), find_python()) {
        (Ok(postgres), Ok(pgbouncer), Ok(_)) => Ok(Tools { postgres, pgbouncer }),
        (postgres, pgbouncer, python) => {
            Err([postgres.err(), pgbouncer.err(), python.err()].into_iter().flatten().collect())
        }
    }
}

fn find_python() -> Result<PathBuf, Missing> {
    find_on_path(PYTHON).ok_or_else(|| Missing {
        program: PYTHON.into(),
        package: PYTHON,
        looked: "PATH".into(),
    })
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
        program: format!("PostgreSQL {OLDEST_POSTGRES} or newer (initdb, pg_ctl, postgres)"),
        package: "postgresql",
        looked: format!("PATH and {DEBIAN_POSTGRES}/*/bin{too_old}"),
    })
}

fn find_pgbouncer() -> Result<PathBuf, Missing> {
    let elsewhere = || Some(Path::new(DEBIAN_SBIN).join("pgbouncer")).filter(|path| path.is_file());
    find_on_path("pgbouncer").or_else(elsewhere).ok_or_else(|| Missing {
        program: "pgbouncer".into(),
        package: "pgbouncer",
        looked: format!("PATH and {DEBIAN_SBIN}"),
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

/// The release of the server in this directory, if all the programs that make one are there.
fn postgres_release(dir: &Path) -> Option<u32> {
    let complete = ["initdb", "pg_ctl", "postgres"].iter().all(|name| dir.join(name).is_file());
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

fn install(missing: &[Missing]) -> Result<()> {
    let packages: Vec<&str> = missing.iter().map(|missing| missing.package).collect();
    eprintln!("installing {} with apt-get", packages.join(" and "));
    let apt = || {
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive").arg("-q");
        apt
    };
    run_quietly(apt().arg("update")).context("could not read the package lists")?;
    run_quietly(apt().args(["install", "-y", "--no-install-recommends"]).args(&packages))
        .with_context(|| format!("could not install {}", packages.join(" and ")))?;
    Ok(())
}

/// What we create belongs to us; so its owner is who we are.
pub fn is_root() -> Result<bool> {
    let file = tempfile::tempfile().context("could not create a temporary file")?;
    Ok(file.metadata().context("could not look at a temporary file")?.uid() == 0)
}

fn explain(missing: &[Missing]) -> String {
    let packages: Vec<&str> = missing.iter().map(|missing| missing.package).collect();
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
