//! What SQLite's answers mean to a caller.

use rusqlite::ErrorCode;
use tidegate_core::{Class, Kind, StoreError};

/// Why a piece of work on a connection failed, before it is known which operation it was part of.
#[derive(Debug)]
pub(crate) enum Failure {
    /// SQLite said so.
    Sql(rusqlite::Error),
    /// The store said so.
    Store(StoreError),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Failure::Sql(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Failure::Store(error)
    }
}

impl Failure {
    /// The error that leaves the crate.
    pub fn during(self, operation: &'static str) -> StoreError {
        match self {
            Failure::Sql(error) => classify(operation, error),
            Failure::Store(error) => error,
        }
    }
}

fn classify(operation: &'static str, error: rusqlite::Error) -> StoreError {
    let (kind, class, advice) = meaning(&error);
    let said = match &error {
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(), // without the statement
        other => other.to_string(),
    };
    let message = match advice {
        "" => said,
        _ => format!("{said}; {advice}"),
    };
    StoreError::new(kind, class, operation, message).because(error)
}

fn meaning(error: &rusqlite::Error) -> (Kind, Class, &'static str) {
    use rusqlite::Error as E;
    match error {
        E::SqliteFailure(code, text) => {
            meaning_of_code(code.code, text.as_deref().unwrap_or_default())
        }
        E::SqlInputError { msg, .. } => meaning_of_code(ErrorCode::Unknown, msg),
        E::FromSqlConversionFailure(..)
        | E::IntegralValueOutOfRange(..)
        | E::InvalidColumnType(..)
        | E::Utf8Error(..) => (Kind::Corrupt, Class::Permanent, "restore the file from a backup"),
        _ => (Kind::Other, Class::Permanent, ""),
    }
}

fn meaning_of_code(code: ErrorCode, text: &str) -> (Kind, Class, &'static str) {
    match code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            (Kind::Other, Class::Transient, "another process is writing; try again")
        }
        ErrorCode::DiskFull => (Kind::Other, Class::Unavailable, "make room on the disk"),
        ErrorCode::ReadOnly => {
            (Kind::ReadOnly, Class::Unavailable, "make the file and its directory writable")
        }
        ErrorCode::CannotOpen
        | ErrorCode::SystemIoFailure
        | ErrorCode::FileLockingProtocolFailed => {
            (Kind::Unreachable, Class::Unavailable, "check the disk and the permissions")
        }
        ErrorCode::DatabaseCorrupt => {
            (Kind::Corrupt, Class::Permanent, "restore the file from a backup")
        }
        ErrorCode::NotADatabase => (Kind::BadAddress, Class::Permanent, "check the path"),
        _ if text.contains("no such table") || text.contains("no such column") => {
            (Kind::SchemaOutdated, Class::Permanent, "run `tidegate migrate`")
        }
        _ => (Kind::Other, Class::Permanent, ""),
    }
}

/// The path leads to no store, or to something else.
pub(crate) fn bad_address(message: impl Into<String>) -> StoreError {
    StoreError::new(Kind::BadAddress, Class::Permanent, "open store", message)
}

/// The path leads to something that cannot be written.
pub(crate) fn read_only(message: impl Into<String>) -> StoreError {
    StoreError::new(Kind::ReadOnly, Class::Permanent, "open store", message)
}

/// A stored value cannot be read.
pub(crate) fn corrupt(operation: &'static str, what: impl std::fmt::Display) -> StoreError {
    let message = format!("{what} is damaged; restore the file from a backup");
    StoreError::new(Kind::Corrupt, Class::Permanent, operation, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::{Error, ffi};

    fn check(code: std::ffi::c_int, kind: Kind, class: Class) {
        let error = Error::SqliteFailure(ffi::Error::new(code), None);
        let error = Failure::from(error).during("claim");
        assert_eq!((error.kind(), error.class()), (kind, class), "{error}");
    }

    #[test]
    fn codes_have_the_class_that_says_what_to_do() {
        check(ffi::SQLITE_BUSY, Kind::Other, Class::Transient);
        check(ffi::SQLITE_LOCKED, Kind::Other, Class::Transient);
        check(ffi::SQLITE_FULL, Kind::Other, Class::Unavailable);
        check(ffi::SQLITE_READONLY, Kind::ReadOnly, Class::Unavailable);
        check(ffi::SQLITE_IOERR, Kind::Unreachable, Class::Unavailable);
        check(ffi::SQLITE_CORRUPT, Kind::Corrupt, Class::Permanent);
        check(ffi::SQLITE_NOTADB, Kind::BadAddress, Class::Permanent);
        check(ffi::SQLITE_CONSTRAINT, Kind::Other, Class::Permanent);
    }
}
