//! The file of `--errors`: it is there as a whole, or not at all.

use anyhow::{Context, Result, bail};
use std::{
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};
use tempfile::NamedTempFile;
use tidegate::records::Format;

/// A file that takes its place when all of it is written.
pub struct ErrorsFile {
    path: PathBuf,
    file: BufWriter<NamedTempFile>,
}

impl ErrorsFile {
    /// Refuses a place that cannot be written to, and the file that is being loaded: before anything is
    /// sent.
    pub fn new(path: &Path, input: &Path) -> Result<Self> {
        if let (Ok(errors), Ok(input)) = (path.canonicalize(), input.canonicalize())
            && errors == input
        {
            bail!("--errors is the file that is loaded: name another one");
        }
        // It would be read as something else when it is loaded again.
        if Format::of_name(path) == Some(Format::Csv) {
            bail!("--errors is written as NDJSON, not CSV: end its name with .ndjson");
        }
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let file = NamedTempFile::new_in(directory);
        let file = file.with_context(|| format!("cannot write `{}`", path.display()))?;
        Ok(Self { path: path.to_owned(), file: BufWriter::new(file) })
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

    /// Puts it in its place.
    pub fn finish(self) -> Result<()> {
        let problem = || format!("cannot write `{}`", self.path.display());
        let file = self.file.into_inner().map_err(|error| error.into_error());
        file.with_context(problem)?.persist(&self.path).with_context(problem)?;
        Ok(())
    }
}
