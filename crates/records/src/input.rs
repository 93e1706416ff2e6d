//! Where records come from.

use crate::{RecordsError, place::Fingerprint};
use std::{
    fmt,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

/// Where records come from.
pub enum Input {
    /// A file, or a pipe with a name.
    Path(PathBuf),
    /// Standard input, or any other stream without a name.
    Stdin(Box<dyn Read + Send>),
}

impl Input {
    /// What messages call it.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Path(path) => path.display().to_string(),
            Self::Stdin(_) => "standard input".to_owned(),
        }
    }

    /// The path, if it has one.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Path(path) => Some(path),
            Self::Stdin(_) => None,
        }
    }

    /// Starts reading it.
    pub(crate) fn open(self) -> Result<Opened, RecordsError> {
        let name = self.name();
        match self {
            Self::Stdin(reader) => Ok(Opened { name, reader, file: None }),
            Self::Path(path) => open_path(name, &path),
        }
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Input({})", self.name())
    }
}

/// An input that is being read.
pub(crate) struct Opened {
    pub name: String,
    pub reader: Box<dyn Read + Send>,
    /// The same file once more if it can be read at any position.
    pub file: Option<(File, Fingerprint)>,
}

fn open_path(name: String, path: &Path) -> Result<Opened, RecordsError> {
    let file = File::open(path).map_err(|cause| match cause.kind() {
        io::ErrorKind::NotFound => RecordsError::NotFound { name: name.clone() },
        io::ErrorKind::IsADirectory => RecordsError::Directory { name: name.clone() },
        _ => RecordsError::Io { name: name.clone(), cause },
    })?;
    let failed = |cause| RecordsError::Io { name: name.clone(), cause };
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(RecordsError::Directory { name });
    }
    let kept = if metadata.is_file() {
        Some((file.try_clone().map_err(failed)?, Fingerprint::of(&metadata)))
    } else {
        None
    };
    Ok(Opened { name, reader: Box::new(file), file: kept })
}
