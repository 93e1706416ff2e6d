//! The programs of PostgreSQL.

use super::Failed;
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

/// Debian keeps each release's programs here, outside of PATH.
const DEBIAN: &str = "/usr/lib/postgresql";

/// The programs that a cluster needs.
const NEEDED: [&str; 5] = ["initdb", "postgres", "pg_ctl", "pg_basebackup", "psql"];

/// The directory with `initdb`, `postgres`, `pg_ctl`, `pg_basebackup` and `psql`.
#[derive(Clone, Debug)]
pub struct Programs(PathBuf);

impl Programs {
    /// Those in `given`, or the newest that Debian's package has installed.
    pub fn find(given: Option<&Path>) -> Result<Self, Failed> {
        if let Some(given) = given {
            return match missing(given) {
                None => Ok(Self(given.to_owned())),
                Some(name) => Err(Failed(format!("there is no {name} in {}", given.display()))),
            };
        }
        let found = debian().into_iter().find(|directory| missing(directory).is_none());
        found.map(Self).ok_or_else(|| {
            Failed(format!(
                "cannot find the programs of PostgreSQL in {DEBIAN}/*/bin: install PostgreSQL, or \
                 name the directory with its programs"
            ))
        })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

fn missing(directory: &Path) -> Option<&'static str> {
    NEEDED.into_iter().find(|name| !directory.join(name).is_file())
}

/// The newest release first.
fn debian() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(DEBIAN).into_iter().flatten().flatten();
    let release = |name: OsString| name.to_str()?.parse::<u32>().ok();
    let mut releases: Vec<u32> = entries.filter_map(|entry| release(entry.file_name())).collect();
    releases.sort_unstable_by(|a, b| b.cmp(a));
    releases.iter().map(|it| Path::new(DEBIAN).join(it.to_string()).join("bin")).collect()
}
