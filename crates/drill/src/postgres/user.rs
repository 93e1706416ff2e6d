//! The user that servers run as: PostgreSQL refuses to run as root.

use super::Failed;
use rustix::process::geteuid;
use std::{
    ffi::OsStr,
    fs,
    os::unix::{fs::chown, process::CommandExt},
    path::Path,
    process::Command,
};

/// The first comes with the Debian package, the second exists everywhere.
const CANDIDATES: [&str; 2] = ["postgres", "nobody"];

/// The user to change to, or `None` if this process does not run as root.
#[derive(Clone, Copy, Debug)]
pub struct User(Option<Ids>);

#[derive(Clone, Copy, Debug)]
struct Ids {
    uid: u32,
    gid: u32,
}

impl User {
    /// A user that a server agrees to run as.
    pub fn for_servers() -> Result<Self, Failed> {
        if !geteuid().is_root() {
            return Ok(Self(None));
        }
        let passwd = fs::read_to_string("/etc/passwd")
            .map_err(|error| Failed::new("cannot read /etc/passwd", error))?;
        let ids = CANDIDATES.iter().find_map(|name| lookup(&passwd, name));
        let ids = ids.ok_or_else(|| {
            Failed("PostgreSQL refuses to run as root, and there is no user `postgres`".to_owned())
        })?;
        Ok(Self(Some(ids)))
    }

    /// Gives the user a file or a directory that this process has created.
    pub fn own(self, path: &Path) -> Result<(), Failed> {
        let Some(ids) = self.0 else { return Ok(()) };
        chown(path, Some(ids.uid), Some(ids.gid)).map_err(|error| {
            Failed::new(&format!("cannot give {} to the servers' user", path.display()), error)
        })
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
