//! Files that no output may be written to: the store, the input, the configuration.
//!
//! Existing files are compared by device and inode, so that links and other spellings of a path are
//! recognized. Nothing is opened: a process that closes any descriptor of an SQLite file loses the locks
//! that it holds on it.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Most symbolic links in a row that are followed, as in Linux.
const MAX_LINKS: usize = 40;

/// Files that no output may be written to, each with what it is.
#[derive(Clone, Debug, Default)]
pub struct Protected {
    paths: Vec<(PathBuf, String)>,
    /// Files whose path is not known, such as the one that a shell opened as stdin.
    open: Vec<(Identity, String)>,
}

impl Protected {
    /// Adds a file, which need not exist yet. `what` says what it is, for people.
    pub fn add(&mut self, path: impl Into<PathBuf>, what: impl Into<String>) {
        self.paths.push((path.into(), what.into()));
    }

    /// Adds a file that is open already. Devices, pipes and sockets hold nothing that could be lost.
    pub fn add_open(&mut self, open: &fs::Metadata, what: impl Into<String>) {
        self.open.extend(identity(open).map(|identity| (identity, what.into())));
    }

    /// What the file at `path` is, if it is protected.
    pub fn find(&self, path: &Path) -> Option<&str> {
        let found = self.paths.iter().find(|(protected, _)| is_same(protected, path));
        let found = found.map(|(_, what)| what.as_str());
        found.or_else(|| self.among_open(&fs::metadata(path).ok()?))
    }

    /// Returns which protected file an open file is, if it is one.
    pub fn find_open(&self, open: &fs::Metadata) -> Option<&str> {
        let same = |path: &Path| fs::metadata(path).is_ok_and(|found| is_one_file(&found, open));
        let found = self.paths.iter().find(|(path, _)| same(path)).map(|(_, what)| what.as_str());
        found.or_else(|| self.among_open(open))
    }

    fn among_open(&self, file: &fs::Metadata) -> Option<&str> {
        let identity = identity(file)?;
        self.open.iter().find(|(open, _)| *open == identity).map(|(_, what)| what.as_str())
    }
}

/// Where a path leads: links are followed, also to a file that does not exist yet.
pub fn resolve(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        if let Ok(found) = path.canonicalize() {
            return found;
        }
        let Ok(target) = fs::read_link(&path) else { break };
        path = directory(&path).join(target);
    }
    match (directory(&path).canonicalize(), path.file_name()) {
        (Ok(directory), Some(name)) => directory.join(name),
        _ => path,
    }
}

/// The directory that a path is in.
pub(crate) fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    let found = (fs::metadata(one), fs::metadata(other));
    let (one, other) = (resolve(one), resolve(other));
    match found {
        (Ok(first), Ok(second)) => one == other || is_one_file(&first, &second),
        _ => one == other || differs_in_case_only(&one, &other),
    }
}

/// On a file system that ignores case, such names would become one file.
fn differs_in_case_only(one: &Path, other: &Path) -> bool {
    let lower = |path: &Path| path.file_name().map(|name| name.to_string_lossy().to_lowercase());
    directory(one) == directory(other) && lower(one) == lower(other)
}

fn is_one_file(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    identity(one).is_some() && identity(one) == identity(other)
}

/// Device and inode: what a file is, whatever its path.
type Identity = (u64, u64);

/// `None` for what is not a regular file: devices and pipes hold nothing that could be lost.
#[cfg(unix)]
fn identity(file: &fs::Metadata) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    file.is_file().then(|| (file.dev(), file.ino()))
}

/// Elsewhere files are compared by their resolved paths.
#[cfg(not(unix))]
fn identity(_: &fs::Metadata) -> Option<Identity> {
    None
}

#[cfg(test)]
mod tests;
