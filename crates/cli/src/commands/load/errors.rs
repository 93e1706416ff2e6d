//! The file of `--errors`: it is there as a whole, or not at all.

use crate::replaced::Replaced;
use anyhow::{Result, bail};
use std::path::Path;
use tidegate::{records::Format, sinks::Protected};

/// The errors of a load.
pub struct ErrorsFile(Replaced);

impl ErrorsFile {
    /// Refuses a place that cannot be written to, and files that must not be: before anything is sent.
    pub fn new(path: &Path, protected: &Protected) -> Result<Self> {
        if let Some(what) = protected.find(path) {
            bail!("--errors is {what}: name another file");
        }
        // It would be read as something else when it is loaded again.
        if Format::of_name(path) == Some(Format::Csv) {
            bail!("--errors is written as NDJSON, not CSV: end its name with .ndjson");
        }
        Ok(Self(Replaced::new(path)?))
    }

    /// Where it will be.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Adds a line.
    pub fn write(&mut self, line: &str) -> Result<()> {
        self.0.write(line)
    }

    /// Puts it in its place.
    pub fn finish(self) -> Result<()> {
        self.0.finish()
    }
}
