//! The one pass over the input: decompressed, hashed, and kept if it cannot be read again.

use crate::{
    Compression, Options, RecordsError,
    compression::MAGIC_BYTES,
    input::Opened,
    place::{Fingerprint, Place},
    window::Fill,
};
use std::{
    cell::Cell,
    fs::File,
    io::{self, Cursor, Read, Write},
    path::PathBuf,
    rc::Rc,
};

/// What the scan reads from.
pub(crate) struct Intake<'a> {
    name: String,
    reader: Box<dyn Read>,
    compression: Option<Compression>,
    keeping: Keeping,
    hasher: blake3::Hasher,
    bytes: u64,
    bytes_read: Rc<Cell<u64>>,
    progress: &'a mut dyn FnMut(u64),
}

/// Where the content can be read again.
enum Keeping {
    InPlace(File, Fingerprint),
    Copy { file: File, directory: PathBuf },
}

/// What the pass has found out, once it is over.
pub(crate) struct Taken {
    pub place: Place,
    pub hash: blake3::Hash,
    pub bytes: u64,
}

impl<'a> Intake<'a> {
    pub fn new(
        input: Opened,
        options: &Options,
        progress: &'a mut dyn FnMut(u64),
    ) -> Result<Self, RecordsError> {
        let Opened { name, reader, file } = input;
        let failed = |cause| RecordsError::Io { name: name.clone(), cause };
        let bytes_read = Rc::new(Cell::new(0));
        let mut reader = Counted { reader, count: Rc::clone(&bytes_read) };
        let mut head = Vec::new();
        reader.by_ref().take(MAGIC_BYTES).read_to_end(&mut head).map_err(failed)?;
        let compression = Compression::of(&head);
        let whole: Box<dyn Read> = Box::new(Cursor::new(head).chain(reader));
        let reader = match compression {
            Some(compression) => compression.decode(whole).map_err(failed)?,
            None => whole,
        };
        let keeping = match file {
            Some((file, fingerprint)) if compression.is_none() => {
                Keeping::InPlace(file, fingerprint)
            }
            _ => spool(&name, options)?,
        };
        let hasher = blake3::Hasher::new();
        Ok(Self { name, reader, compression, keeping, hasher, bytes: 0, bytes_read, progress })
    }

    /// Everything must have been read.
    pub fn finish(self) -> Taken {
        let (file, fingerprint) = match self.keeping {
            Keeping::InPlace(file, fingerprint) => (file, Some(fingerprint)),
            Keeping::Copy { file, .. } => (file, None),
        };
        let place = Place { name: self.name, file, fingerprint };
        Taken { place, hash: self.hasher.finalize(), bytes: self.bytes }
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, RecordsError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.reader.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(self.explain(cause)),
            }
        }
        Ok(filled)
    }

    fn explain(&self, cause: io::Error) -> RecordsError {
        let name = self.name.clone();
        match self.compression {
            Some(compression) => compression.explain(name, cause),
            None => RecordsError::Io { name, cause },
        }
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), RecordsError> {
        let Keeping::Copy { file, directory } = &mut self.keeping else { return Ok(()) };
        file.write_all(bytes).map_err(|cause| {
            let (name, directory) = (self.name.clone(), directory.clone());
            RecordsError::Spool { name, directory, cause }
        })
    }
}

impl Fill for Intake<'_> {
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, RecordsError> {
        let filled = self.read(buffer)?;
        let bytes = &buffer[..filled];
        self.hasher.update(bytes);
        self.keep(bytes)?;
        self.bytes += filled as u64;
        (self.progress)(self.bytes_read.get());
        Ok(filled)
    }
}

/// A file without a name: the system takes it back however the process ends.
fn spool(name: &str, options: &Options) -> Result<Keeping, RecordsError> {
    let directory = options.spool_dir.clone().unwrap_or_else(std::env::temp_dir);
    match tempfile::tempfile_in(&directory) {
        Ok(file) => Ok(Keeping::Copy { file, directory }),
        Err(cause) => Err(RecordsError::Spool { name: name.to_owned(), directory, cause }),
    }
}

/// Counts what is read before it is decompressed.
struct Counted {
    reader: Box<dyn Read + Send>,
    count: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.count.set(self.count.get() + count as u64);
        Ok(count)
    }
}
