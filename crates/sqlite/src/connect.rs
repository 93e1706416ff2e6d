//! Opening connections: one that writes, one that only reads.

use crate::{
    Open,
    errors::{Failure, bad_address, read_only},
    migrate::{Identity, foreign, identity},
    place::{Place, survey},
};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::{
    fs::OpenOptions,
    os::unix::fs::OpenOptionsExt,
    path::Path,
    time::{Duration, Instant},
};
use tidegate_core::StoreError;

/// How long a connection waits for another process. Below the deadline of a call, so that its caller
/// hears the reason.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Commits move the log into the file once it has this many pages (16 MiB): large enough that not
/// every settlement with a large page pays for it, small enough to bound the log and the time to
/// recover from a crash. Readers are short, so that the log starts over each time.
const WAL_PAGES: i64 = 4_096;

/// A log that grew beyond this, behind a slow reader, is cut when it starts over.
const WAL_BYTES: i64 = 64 << 20;

/// More than there are statements.
const CACHED_STATEMENTS: usize = 128;

/// The two connections of a store.
pub(crate) struct Connections {
    pub reader: Connection,
    pub writer: Connection,
}

/// Opens the database at `path`; changes nothing but what `open` allows.
pub(crate) fn connect(path: &Path, open: Open) -> Result<Connections, StoreError> {
    let place = survey(path)?;
    if !place.exists && open == Open::Existing {
        let message = format!(
            "there is no store at `{}`: `tidegate run`, `submit`, `publish` or `migrate` make one",
            path.display()
        );
        return Err(bad_address(message));
    }
    open_both(&place).map_err(|failure| failure.during("open store"))
}

fn open_both(place: &Place) -> Result<Connections, Failure> {
    let mut identity = Identity::Empty;
    if place.exists {
        identity = probe(&place.path)?;
    }
    let writer = open_writer(place)?;
    if identity == Identity::Ours {
        enable_wal(&writer)?;
    }
    Ok(Connections { reader: open_reader(&place.path)?, writer })
}

/// Looks at a database without the right to change it: it may be somebody else's.
fn probe(path: &Path) -> Result<Identity, Failure> {
    let connection = open_reader(path)?;
    match identity(&connection) {
        Ok(Identity::Foreign) => Err(foreign(&connection).into()),
        Err(Failure::Sql(error)) if is_no_database(&error) => {
            let message = format!("`{}` is no SQLite database; check the path", path.display());
            Err(bad_address(message).because(error).into())
        }
        identity => identity,
    }
}

fn is_no_database(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::NotADatabase)
}

fn open_reader(path: &Path) -> Result<Connection, Failure> {
    let connection = Connection::open_with_flags(path, flags(OpenFlags::SQLITE_OPEN_READ_ONLY))?;
    configure(&connection)?;
    Ok(connection)
}

fn open_writer(place: &Place) -> Result<Connection, Failure> {
    let create = match place.exists {
        true => OpenFlags::empty(),
        false => {
            make_private(&place.path);
            OpenFlags::SQLITE_OPEN_CREATE
        }
    };
    let flags = flags(OpenFlags::SQLITE_OPEN_READ_WRITE | create);
    let connection = Connection::open_with_flags(&place.path, flags)?;
    configure(&connection)?;
    if connection.is_readonly("main")? {
        return Err(read_only(format!("`{}` is read-only", place.path.display())).into());
    }
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "wal_autocheckpoint", WAL_PAGES)?;
    connection.pragma_update(None, "journal_size_limit", WAL_BYTES)?;
    Ok(connection)
}

/// Makes an empty file that only its owner may read: it will hold payloads. SQLite gives the files beside
/// it the same mode. If another process was faster, or it fails, SQLite has the last word.
fn make_private(path: &Path) {
    let _ = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
}

/// A connection stays on one thread, so that SQLite needs no mutex of its own.
fn flags(more: OpenFlags) -> OpenFlags {
    OpenFlags::SQLITE_OPEN_NO_MUTEX | more
}

fn configure(connection: &Connection) -> Result<(), Failure> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    Ok(())
}

/// Turns write-ahead logging on; the file remembers it. SQLite does not wait for others here, so this
/// does.
pub(crate) fn enable_wal(connection: &Connection) -> Result<(), Failure> {
    let start = Instant::now();
    loop {
        match journal_mode(connection) {
            Err(error) if is_busy(&error) && start.elapsed() < BUSY_TIMEOUT => {
                std::thread::sleep(Duration::from_millis(5));
            }
            mode => return refuse_other_mode(connection, &mode?),
        }
    }
}

fn journal_mode(connection: &Connection) -> rusqlite::Result<String> {
    connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

fn refuse_other_mode(connection: &Connection, mode: &str) -> Result<(), Failure> {
    match mode {
        "wal" => Ok(()),
        _ => Err(bad_address(format!(
            "the file system of `{}` allows no write-ahead log (journal mode {mode}); use another",
            connection.path().unwrap_or_default()
        ))
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(connection: &Connection, pragma: &str, expected: i64) {
        let value: i64 = connection.pragma_query_value(None, pragma, |row| row.get(0)).unwrap();
        assert_eq!(value, expected, "{pragma}");
    }

    #[test]
    fn commits_are_durable_and_the_log_is_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let both = connect(&directory.path().join("a.db"), Open::Create).unwrap();
        enable_wal(&both.writer).unwrap();
        check(&both.writer, "synchronous", 2);
        check(&both.writer, "wal_autocheckpoint", WAL_PAGES);
        check(&both.writer, "journal_size_limit", WAL_BYTES);
        for connection in [&both.writer, &both.reader] {
            check(connection, "busy_timeout", BUSY_TIMEOUT.as_millis() as i64);
        }
        assert!(both.reader.execute_batch("CREATE TABLE a (b)").is_err());
    }
}
