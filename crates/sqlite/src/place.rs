//! Where the file lies: what is checked before SQLite may touch it.
//!
//! Nothing here opens the file. When a process closes any descriptor of a file, it loses all its
//! locks on it, those of SQLite's connections included.

use crate::errors::{bad_address, read_only};
use rustix::{
    fs::{Access, access},
    io::Errno,
};
use std::{
    fs,
    path::{Path, PathBuf},
};
use tidegate_core::StoreError;

/// Most symbolic links in a row that are followed, as in Linux.
const MAX_LINKS: usize = 40;

/// A path that a store can live at.
pub(crate) struct Place {
    /// Absolute, so that it means the same file whatever the working directory and whatever SQLite
    /// takes for a special name.
    pub path: PathBuf,
    /// Whether there is a file already.
    pub exists: bool,
}

/// Checks `path` without changing anything there.
pub(crate) fn survey(path: &Path) -> Result<Place, StoreError> {
    let place = resolve(path)?;
    let directory = place.path.parent().unwrap_or(Path::new("/"));
    refuse_network(directory)?;
    if place.exists {
        if !place.path.is_file() {
            return Err(bad_address(format!("`{}` is not a file", place.path.display())));
        }
        refuse_unwritable(&place.path, "the file")?;
    }
    // The write-ahead log lies beside the file.
    refuse_unwritable(directory, "the directory")?;
    Ok(place)
}

fn resolve(path: &Path) -> Result<Place, StoreError> {
    let mut path = path.to_owned();
    // Links may lead to a file that is not there yet. A ring of them is left to SQLite.
    for _ in 0..MAX_LINKS {
        if let Ok(path) = path.canonicalize() {
            return Ok(Place { path, exists: true });
        }
        let Ok(target) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    let shown = path.display();
    let name = path.file_name().ok_or_else(|| bad_address(format!("`{shown}` names no file")))?;
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let directory = directory.canonicalize().map_err(|error| {
        let message = format!("there is no directory `{}` for `{shown}`", directory.display());
        bad_address(message).because(error)
    })?;
    Ok(Place { path: directory.join(name), exists: false })
}

/// A file without any write permission is respected even by a user who could write to it.
fn refuse_unwritable(path: &Path, what: &str) -> Result<(), StoreError> {
    let marked = fs::metadata(path).is_ok_and(|metadata| metadata.permissions().readonly());
    let denied = matches!(access(path, Access::WRITE_OK), Err(Errno::ACCESS | Errno::ROFS));
    match marked || denied {
        true => Err(read_only(format!(
            "{what} `{}` is read-only; a store must be able to write there",
            path.display()
        ))),
        false => Ok(()),
    }
}

#[cfg(target_os = "linux")]
fn refuse_network(directory: &Path) -> Result<(), StoreError> {
    let Ok(status) = rustix::fs::statfs(directory) else { return Ok(()) };
    // Some of the numbers have the highest of 32 bits set, and the field's sign varies.
    match network(status.f_type as u64 & 0xFFFF_FFFF) {
        None => Ok(()),
        Some(name) => Err(bad_address(format!(
            "`{}` is on a network file system ({name}), where SQLite's locks and shared memory do \
             not hold; use a local disk, or PostgreSQL",
            directory.display()
        ))),
    }
}

/// Elsewhere file systems are not numbered; SQLite's own locking has the last word.
#[cfg(not(target_os = "linux"))]
fn refuse_network(_: &Path) -> Result<(), StoreError> {
    Ok(())
}

/// The name of a network file system by the number that `statfs` gives.
#[cfg(target_os = "linux")]
fn network(number: u64) -> Option<&'static str> {
    Some(match number {
        0x6969 => "NFS",
        0x517B => "SMB",
        0xFE53_4D42 => "SMB2",
        0xFF53_4D42 => "CIFS",
        0x564C => "NCP",
        0x5346_414F => "AFS",
        0x7375_7245 => "Coda",
        0x00C3_6400 => "Ceph",
        0x0BD0_0BD0 => "Lustre",
        0x4750_4653 => "GPFS",
        0x7461_636F => "OCFS2",
        0x0116_1970 => "GFS2",
        _ => return None,
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_known_by_their_number() {
        assert_eq!(network(0x6969), Some("NFS"));
        assert_eq!(network(0xEF53), None, "ext4");
    }

    #[test]
    fn a_special_name_is_a_file_like_any_other() {
        let place = resolve(Path::new(":memory:")).unwrap();
        assert!(place.path.is_absolute() && !place.exists);
    }
}
