//! Whether lines can be added to a file, found out without opening or making it.

use crate::protected::{directory, resolve};
use rustix::{
    fs::{Access, access},
    io::Errno,
};
use std::{
    fs::{self, File},
    io::{self, ErrorKind, Read},
    os::unix::fs::FileTypeExt,
    path::Path,
};

/// What every SQLite database begins with.
const DATABASE: &[u8] = b"SQLite format 3\0";

/// Refuses a path that no file can be at, or whose file cannot be written.
pub fn check(path: &Path) -> Result<(), String> {
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return check_directory(directory(&resolve(path)));
        }
        Err(error) => return Err(format!("{} cannot be used: {error}", path.display())),
        Ok(_) => check_kind(path)?,
    }
    match is_denied(path, Access::WRITE_OK) {
        true => Err(format!("{} may not be written: change its permissions", path.display())),
        false => Ok(()),
    }
}

/// Refuses what no lines can be added to: opening a pipe may hang, and lines would damage a database.
pub fn check_kind(path: &Path) -> Result<(), String> {
    let Ok(found) = fs::metadata(path) else { return Ok(()) };
    let (kind, shown) = (found.file_type(), path.display());
    if kind.is_dir() {
        return Err(format!("{shown} is a directory: add a file's name"));
    }
    if kind.is_fifo() || kind.is_socket() || kind.is_block_device() {
        return Err(format!("{shown} is a pipe, a socket or a disk: name a file"));
    }
    match kind.is_file() && is_database(path) {
        true => Err(format!("{shown} is an SQLite database: name another file")),
        false => Ok(()),
    }
}

/// Refuses a directory that is missing, or in which no file may be made.
pub fn check_directory(directory: &Path) -> Result<(), String> {
    let shown = directory.display();
    if !directory.is_dir() {
        return Err(format!("{shown} is not a directory: create it"));
    }
    match is_denied(directory, Access::WRITE_OK | Access::EXEC_OK) {
        true => Err(format!("no file may be made in {shown}: change its permissions")),
        false => Ok(()),
    }
}

fn is_denied(path: &Path, how: Access) -> bool {
    matches!(access(path, how), Err(Errno::ACCESS | Errno::ROFS | Errno::PERM))
}

fn is_database(path: &Path) -> bool {
    let begin = || -> io::Result<Vec<u8>> {
        let mut begin = Vec::new();
        File::open(path)?.take(DATABASE.len() as u64).read_to_end(&mut begin)?;
        Ok(begin)
    };
    begin().is_ok_and(|begin| begin == DATABASE)
}
