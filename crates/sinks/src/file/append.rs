//! Adding lines to a file, so that there is never half a line in the middle.

use std::{
    fs::{File, OpenOptions},
    io::{self, ErrorKind, Read, Seek, SeekFrom, Write},
    path::Path,
};

/// How much is read at once while the end of a torn line is looked for.
const STEP: u64 = 64 << 10;

/// Adds whole lines. When this returns, they are in the file, and with `sync` on the disk; if it
/// fails, none is, or they may be.
pub fn append(path: &Path, lines: &[u8], sync: bool) -> io::Result<()> {
    let (mut file, new) = open(path)?;
    // Whoever else writes here must not take our lines that are half written for torn ones.
    file.lock()?;
    let end = repair(&mut file)?;
    if let Err(error) = file.write_all(lines) {
        // So that a full disk is not left with half a line; the next call repairs it otherwise.
        let _ = file.set_len(end);
        return Err(error);
    }
    if sync {
        file.sync_data()?;
        if new {
            sync_directory(path)?;
        }
    }
    Ok(())
}

/// The file, and whether it was made. A new file is for its owner only: it holds payloads.
fn open(path: &Path) -> io::Result<(File, bool)> {
    let mut options = OpenOptions::new();
    options.read(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // If another made it at the same time, its name may not be on the disk yet either.
            options.create(true).open(path).map(|file| (file, true))
        }
        opened => opened.map(|file| (file, false)),
    }
}

/// Brings the end of the file in order, and returns it. What a crash left of a line is removed: its
/// item was never done, and comes again. A whole line without a break, perhaps by another hand, is
/// ended.
fn repair(file: &mut File) -> io::Result<u64> {
    let end = file.seek(SeekFrom::End(0))?;
    let begin = last_line(file, end)?;
    if begin == end {
        return Ok(end);
    }
    let mut line = Vec::new();
    file.seek(SeekFrom::Start(begin))?;
    file.read_to_end(&mut line)?;
    if serde_json::from_slice::<serde::de::IgnoredAny>(&line).is_ok() {
        file.write_all(b"\n")?;
        return Ok(end + 1);
    }
    file.set_len(begin)?;
    Ok(begin)
}

/// Where the last line begins that has no break at its end.
fn last_line(file: &mut File, end: u64) -> io::Result<u64> {
    let mut buffer = Vec::new();
    let (mut from, mut step) = (end, 1);
    while from > 0 {
        let to = from;
        from = from.saturating_sub(step);
        file.seek(SeekFrom::Start(from))?;
        buffer.clear();
        Read::by_ref(file).take(to - from).read_to_end(&mut buffer)?;
        if let Some(at) = buffer.iter().rposition(|byte| *byte == b'\n') {
            return Ok(from + at as u64 + 1);
        }
        // Almost always the first byte that is looked at is a line break.
        step = STEP;
    }
    Ok(0)
}

/// A new file is on the disk when its name is.
#[cfg(unix)]
fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(not(unix))]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// What is in a file with this content after a line is added.
    fn after(content: &str) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        fs::write(&path, content).unwrap();
        append(&path, b"{\"n\":9}\n", true).unwrap();
        fs::read_to_string(path).unwrap()
    }

    #[test]
    fn half_a_line_is_removed_and_a_whole_one_ended() {
        let whole = "{\"n\":1}\n{\"n\":2}\n";
        let added = format!("{whole}{{\"n\":9}}\n");
        assert_eq!(after(whole), added);
        assert_eq!(after(whole.trim_end()), added);
        for torn in ["{", "{\"n\":3", "{\"n\":3}{", "\u{0}\u{0}"] {
            assert_eq!(after(&format!("{whole}{torn}")), added, "{torn}");
        }
        assert_eq!(after(""), "{\"n\":9}\n");
        assert_eq!(after("{\"n\":"), "{\"n\":9}\n");
        let long = format!("{{\"n\":\"{}", "x".repeat(300_000));
        assert_eq!(after(&format!("{whole}{long}")), added);
        assert_eq!(after(&long), "{\"n\":9}\n");
    }

    #[test]
    fn a_new_file_is_made_but_no_directory() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new");
        append(&path, b"1\n", true).unwrap();
        append(&path, b"2\n", false).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "1\n2\n");
        let error = append(&directory.path().join("no/new"), b"1\n", true).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
}
