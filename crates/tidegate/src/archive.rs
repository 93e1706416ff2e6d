//! What becomes of messages that were sent: files, or nothing.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    time::Duration,
};
use tidegate_core::{OutboxStore, StoreError, outbox::Sealed};
pub use tidegate_engine::relay::purge;
use tidegate_sinks::line;

/// Messages that are read at once.
const READ: usize = 2_000;

/// What was moved.
#[derive(Clone, Debug, Default)]
pub struct Archived {
    /// How many messages.
    pub messages: u64,
    /// The files that hold them.
    pub files: Vec<PathBuf>,
}

/// Why messages were not archived.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The store failed.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// A file could not be written.
    #[error("{0}")]
    File(#[from] io::Error),
}

/// Writes messages that were sent, and published longer ago than `age`, to compressed files of lines, and
/// removes them. A file is complete and durable before anything is removed; if the removal fails, the
/// next call writes the same file again.
pub async fn archive(
    store: &dyn OutboxStore,
    directory: &Path,
    age: Duration,
) -> Result<Archived, ArchiveError> {
    if !directory.is_dir() {
        fs::create_dir(directory)?;
    }
    let (mut archived, mut without) = (Archived::default(), None);
    while let Some(sealed) = store.seal(age).await? {
        let Some(path) = write(store, directory, sealed).await? else {
            // Nothing of it was sent. What was set aside stays, and its place is needed for others.
            store.discard(sealed).await?;
            if without.replace(sealed) == Some(sealed) {
                break;
            }
            continue;
        };
        match store.discard(sealed).await? {
            // Something was added meanwhile: what is in the file is still in the store.
            0 => fs::remove_file(&path)?,
            removed => {
                archived.messages += removed;
                archived.files.push(path);
            }
        }
    }
    Ok(archived)
}

/// Makes the name of a file durable: a new or renamed file may be gone after a crash, however durable its content
/// is, until its directory is.
pub fn sync_name(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

/// What every compressed file begins with.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// An archive that is being written, for its owner only. Whatever had its name, perhaps a link to something
/// else, is replaced and not written to.
fn begin(unfinished: &Path) -> io::Result<File> {
    match fs::remove_file(unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(unfinished)
}

/// Refuses to replace a file that is not an archive. One that is keeps its mode.
fn adopt_mode(path: &Path, unfinished: &File) -> io::Result<()> {
    let mut old = match File::open(path) {
        Ok(old) => old,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut beginning = [0; MAGIC.len()];
    if old.read_exact(&mut beginning).is_err() || beginning != MAGIC {
        let problem = format!("{} exists and is not an archive: move it away", path.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, problem));
    }
    unfinished.set_permissions(old.metadata()?.permissions())
}

/// Writes sealed messages to a file named after the first of them. Returns its path.
async fn write(
    store: &dyn OutboxStore,
    directory: &Path,
    sealed: Sealed,
) -> Result<Option<PathBuf>, ArchiveError> {
    let mut messages = store.sealed(sealed, None, READ).await?;
    let Some(first) = messages.first().map(|message| message.name.clone()) else {
        return Ok(None);
    };
    let path = directory.join(format!("{first}.ndjson.zst"));
    let unfinished = directory.join(format!("{first}.ndjson.zst.part"));
    let begun = begin(&unfinished)?;
    adopt_mode(&path, &begun)?;
    let mut file = zstd::Encoder::new(begun, 0)?;
    while let Some(last) = messages.last().map(|message| message.id.clone()) {
        let mut lines = Vec::new();
        for message in &messages {
            line::push(&mut lines, &message.item()).map_err(io::Error::other)?;
        }
        file.write_all(&lines)?;
        messages = store.sealed(sealed, Some(last), READ).await?;
    }
    file.finish()?.sync_all()?;
    fs::rename(&unfinished, &path)?;
    sync_name(&path)?;
    Ok(Some(path))
}
