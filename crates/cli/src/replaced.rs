//! Files of output that take their place when all of them is written.

use anyhow::{Context, Result, bail};
use std::{
    fs::{self, Metadata, OpenOptions},
    io::{self, BufWriter, Write},
    os::{
        fd::AsFd,
        unix::fs::{FileTypeExt, MetadataExt},
    },
    path::{Path, PathBuf},
};
use tempfile::NamedTempFile;
use tidegate::{archive::sync_name, sinks::protected::resolve};

/// A file of lines that is there as a whole, or not at all. Only its owner may read it, unless it replaces
/// a file with another mode. Pipes and devices are written to directly.
pub struct Replaced {
    /// As it was named.
    path: PathBuf,
    to: To,
}

enum To {
    /// A file that gets its name at the end.
    Place {
        file: BufWriter<NamedTempFile>,
        /// Behind all links: those stay.
        target: PathBuf,
        /// Whether it may take the place of a file.
        replaces: bool,
    },
    /// A pipe, a device, or where stdout or stderr go.
    Stream(BufWriter<Box<dyn Write>>),
}

impl Replaced {
    /// Begins a file. Refuses a place that cannot be written to, and what cannot hold lines.
    pub fn new(path: &Path) -> Result<Self> {
        let begun = match fs::metadata(path) {
            Ok(found) => match stream(path, &found) {
                Some(stream) => stream.map(|stream| To::Stream(BufWriter::new(stream))),
                None if !found.is_file() => bail!("{}: it is not a file", problem(path)),
                None => begin(path, true),
            },
            Err(_) => begin(path, true),
        };
        Ok(Self { path: path.to_owned(), to: begun.with_context(|| problem(path))? })
    }

    /// Begins a file that replaces none, not even one that is made meanwhile.
    pub fn new_file(path: &Path) -> Result<Self> {
        let to = begin(path, false).with_context(|| problem(path))?;
        Ok(Self { path: path.to_owned(), to })
    }

    /// Where it will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line.
    pub fn write(&mut self, line: &str) -> Result<()> {
        let written = match &mut self.to {
            To::Place { file, .. } => writeln!(file, "{line}"),
            To::Stream(stream) => writeln!(stream, "{line}"),
        };
        written.with_context(|| problem(&self.path))
    }

    /// Puts it in its place, durably.
    pub fn finish(self) -> Result<()> {
        let finished = match self.to {
            To::Place { file, target, replaces } => put(file, &target, replaces),
            To::Stream(mut stream) => stream.flush(),
        };
        finished.with_context(|| problem(&self.path))
    }
}

fn problem(path: &Path) -> String {
    format!("cannot write `{}`", path.display())
}

fn begin(path: &Path, replaces: bool) -> io::Result<To> {
    let target = resolve(path);
    let directory = target.parent().unwrap_or(Path::new("."));
    let file = NamedTempFile::new_in(directory)?;
    if let Ok(old) = fs::metadata(&target) {
        file.as_file().set_permissions(old.permissions())?;
    }
    Ok(To::Place { file: BufWriter::new(file), target, replaces })
}

fn put(file: BufWriter<NamedTempFile>, target: &Path, replaces: bool) -> io::Result<()> {
    let file = file.into_inner().map_err(|error| error.into_error())?;
    file.as_file().sync_all()?;
    match replaces {
        true => file.persist(target)?,
        false => file.persist_noclobber(target)?,
    };
    sync_name(target)
}

/// What is no file is not replaced, but written to. The same goes for the file that a shell has opened as stdout:
/// what else is printed there must not be lost.
fn stream(path: &Path, found: &Metadata) -> Option<io::Result<Box<dyn Write>>> {
    let is = |open: io::Result<Metadata>| {
        open.is_ok_and(|open| (open.dev(), open.ino()) == (found.dev(), found.ino()))
    };
    let kind = found.file_type();
    if is(crate::app::metadata(io::stdout().as_fd())) {
        Some(Ok(Box::new(io::stdout())))
    } else if is(crate::app::metadata(io::stderr().as_fd())) {
        Some(Ok(Box::new(io::stderr())))
    } else if kind.is_char_device() || kind.is_fifo() {
        let open = OpenOptions::new().write(true).open(path);
        Some(open.map(|open| Box::new(open) as Box<dyn Write>))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_never_takes_the_place_of_one_that_was_made_meanwhile() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("copy.ndjson");
        let mut file = Replaced::new_file(&path).unwrap();
        file.write("ours").unwrap();
        fs::write(&path, "theirs").unwrap();
        assert!(file.finish().is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
        let mut file = Replaced::new(&path).unwrap();
        file.write("ours").unwrap();
        file.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "ours\n");
    }
}
