//! Who the servers run as: both refuse to run as root.

use crate::install::is_root;
use anyhow::{Context, Result};
use std::{
    ffi::OsStr,
    os::unix::{fs::chown, process::CommandExt},
    path::Path,
    process::Command,
};

/// The servers' own user comes with the Debian package; the other one is everywhere.
const CANDIDATES: [&str; 2] = ["postgres", "nobody"];

/// The user to change to, or nobody else if we are not root.
#[derive(Clone, Copy)]
pub struct User(Option<Ids>);

#[derive(Clone, Copy)]
struct Ids {
    uid: u32,
    gid: u32,
}

impl User {
    /// A user that a server agrees to run as.
    pub fn for_servers() -> Result<Self> {
        if !is_root()? {
            return Ok(Self(None));
        }
        let passwd = std::fs::read_to_string("/etc/passwd").context("could not read the users")?;
        let ids = CANDIDATES.iter().find_map(|name| lookup(&passwd, name));
        let ids =
            ids.context("servers refuse to run as root, and /etc/passwd has no `postgres`")?;
        Ok(Self(Some(ids)))
    }

    /// The user to change to as `uid:gid`.
    pub fn ids(self) -> Option<String> {
        self.0.map(|ids| format!("{}:{}", ids.uid, ids.gid))
    }

    /// Gives the user what we have created.
    pub fn own(self, path: &Path) -> Result<()> {
        let Some(ids) = self.0 else { return Ok(()) };
        chown(path, Some(ids.uid), Some(ids.gid))
            .with_context(|| format!("could not give {} to the servers' user", path.display()))
    }

    /// A command that the user runs, in a directory that the user may enter.
    pub fn command(self, program: impl AsRef<OsStr>, directory: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(directory);
        if let Some(ids) = self.0 {
            command.uid(ids.uid).gid(ids.gid);
        }
        command
    }
}

fn lookup(passwd: &str, name: &str) -> Option<Ids> {
    let fields = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let line = fields.into_iter().find(|fields| fields.first() == Some(&name))?;
    Some(Ids { uid: line.get(2)?.parse().ok()?, gid: line.get(3)?.parse().ok()? })
}
