//! Files of output that take their place when all of them is written.

use anyhow::{Context, Result, bail};
use std::{
    fs,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};
use tempfile::NamedTempFile;
use tidegate::sinks::protected::resolve;

/// A file of lines that is there as a whole, or not at all. Only its owner may read it, unless it replaces
/// a file with another mode.
pub struct Replaced {
    /// As it was named.
    path: PathBuf,
    /// Behind all links: those stay.
    target: PathBuf,
    file: BufWriter<NamedTempFile>,
}

impl Replaced {
    /// Begins a file. Refuses a place that cannot be written to, and what is not a file.
    pub fn new(path: &Path) -> Result<Self> {
        let problem = || format!("cannot write `{}`", path.display());
        let target = resolve(path);
        if fs::metadata(&target).is_ok_and(|found| !found.is_file()) {
            bail!("{}: it is not a file", problem());
        }
        let directory = target.parent().unwrap_or(Path::new("."));
        let file = NamedTempFile::new_in(directory).with_context(problem)?;
        if let Ok(old) = fs::metadata(&target) {
            file.as_file().set_permissions(old.permissions()).with_context(problem)?;
        }
        Ok(Self { path: path.to_owned(), target, file: BufWriter::new(file) })
    }

    /// Where it will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line.
    pub fn write(&mut self, line: &str) -> Result<()> {
        let written = writeln!(self.file, "{line}");
        written.with_context(|| format!("cannot write `{}`", self.path.display()))
    }

    /// Puts it in its place, durably.
    pub fn finish(self) -> Result<()> {
        let problem = || format!("cannot write `{}`", self.path.display());
        let file = self.file.into_inner().map_err(|error| error.into_error());
        let file = file.with_context(problem)?;
        file.as_file().sync_all().with_context(problem)?;
        file.persist(&self.target).with_context(problem)?;
        Ok(())
    }
}
