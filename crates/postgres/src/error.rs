//! What PostgreSQL says, as kind × class. No text of these holds a password.

use crate::{
    connect::ConnectError,
    tls::{self, Failure},
};
use deadpool::managed::PoolError;
use std::{error::Error, fmt::Display, io, time::Duration};
use tidegate_core::{Class, Kind, StoreError};
use tokio_postgres::error::{DbError, SqlState};

/// A statement was rolled back because of others; it may be sent again.
pub(crate) fn is_conflict(error: &tokio_postgres::Error) -> bool {
    let conflicts = [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE];
    error.code().is_some_and(|code| conflicts.contains(code))
}

/// A statement failed.
pub(crate) fn failed(operation: &'static str, error: tokio_postgres::Error) -> StoreError {
    let (kind, class, message) = match error.as_db_error() {
        Some(answer) => {
            let (kind, class, advice) = classify(answer);
            if kind == Kind::WentBack {
                return StoreError::went_back(operation).because(error);
            }
            // It says all that the server said.
            return StoreError::new(kind, class, operation, said(answer) + advice);
        }
        None if is_broken(&error) => {
            let message = format!("the connection to PostgreSQL broke: {}", root(&error));
            (Kind::Unreachable, Class::Unavailable, message)
        }
        None => (Kind::Other, Class::Permanent, root(&error)),
    };
    StoreError::new(kind, class, operation, message).because(error)
}

/// No connection could be made.
pub(crate) fn no_connection(
    operation: &'static str,
    place: &str,
    error: PoolError<ConnectError>,
) -> StoreError {
    let error = match error {
        PoolError::Backend(ConnectError::Postgres(error)) => error,
        PoolError::Backend(ConnectError::Tls(failure)) => {
            return no_tls(operation, place, &failure);
        }
        other => {
            let problem = match other {
                PoolError::Backend(error) => error.to_string(),
                other => other.to_string(),
            };
            let message = format!("no connection to PostgreSQL at {place}: {problem}");
            return StoreError::new(Kind::Unreachable, Class::Unavailable, operation, message);
        }
    };
    let source = error.source();
    if let Some(failure) = source.and_then(|source| source.downcast_ref()) {
        return no_tls(operation, place, failure);
    }
    if let Some(problem) = source.and_then(|it| it.downcast_ref()).and_then(tls::of_io) {
        return no_tls(operation, place, &Failure::settings(problem));
    }
    let (kind, class, message) = match error.as_db_error() {
        Some(answer) => {
            let (kind, class, advice) = classify(answer);
            let advice = if wants_certificate(answer) { CERTIFICATE } else { advice };
            (kind, class, format!("PostgreSQL at {place} refused: {}{advice}", answer.message()))
        }
        None if is_broken(&error) => {
            let message = format!(
                "no PostgreSQL answers at {place}: {}; check that it runs and that the URL is right",
                root(&error)
            );
            (Kind::Unreachable, Class::Unavailable, message)
        }
        None => {
            let (problem, advice) = (root(&error), login_advice(&root(&error)));
            let message = format!("cannot log in to PostgreSQL at {place}: {problem}{advice}");
            (Kind::BadAddress, Class::Permanent, message)
        }
    };
    StoreError::new(kind, class, operation, message).because(error)
}

/// TLS is wanted, and there is none.
fn no_tls(operation: &'static str, place: &str, failure: &Failure) -> StoreError {
    let (kind, class) = match failure.is_broken() {
        true => (Kind::Unreachable, Class::Unavailable),
        false => (Kind::BadAddress, Class::Permanent),
    };
    let message = format!("no connection to PostgreSQL at {place}: {failure}");
    StoreError::new(kind, class, operation, message)
}

const CERTIFICATE: &str =
    "; the server wants a certificate of the client that names the user: give sslcert and sslkey";

/// All that a server says about it is a text. Whoever is trusted can only fail because of it.
fn wants_certificate(answer: &DbError) -> bool {
    let texts = ["certificate", "\"trust\" authentication failed"];
    LOGIN.contains(answer.code()) && texts.iter().any(|text| answer.message().contains(text))
}

/// What to do about an error of the driver, which has no more than its text.
fn login_advice(problem: &str) -> &'static str {
    if problem.contains("does not support TLS") {
        "; switch it on there (ssl = on), or use sslmode=prefer or disable on a network that you trust"
    } else if problem.contains("channel binding") {
        "; channel_binding=require needs TLS, a login by scram-sha-256, and no pooler in between"
    } else {
        ""
    }
}

/// No connection was made in time; nothing was sent.
pub(crate) fn no_answer(operation: &'static str, place: &str, within: Duration) -> StoreError {
    let seconds = within.as_secs_f64();
    let message = format!("no connection to PostgreSQL at {place} within {seconds:.0} s");
    StoreError::new(Kind::Unreachable, Class::Unavailable, operation, message)
}

/// The call took too long.
pub(crate) fn deadline(operation: &'static str, within: Duration) -> StoreError {
    let message = format!(
        "no answer from PostgreSQL within {:.0} s; whether it took effect is unknown",
        within.as_secs_f64()
    );
    StoreError::new(Kind::Deadline, Class::Transient, operation, message)
}

/// The URL cannot be used.
pub(crate) fn bad_address(problem: impl Display) -> StoreError {
    let message = format!("{problem}; expected postgres://user:password@host:port/database");
    StoreError::new(Kind::BadAddress, Class::Permanent, "connect", message)
}

/// The URL cannot be read.
pub(crate) fn bad_url(error: tokio_postgres::Error) -> StoreError {
    bad_address(format!("the URL cannot be read: {}", root(&error)))
}

/// Something that was stored, or the answer to a statement, is not what it should be.
pub(crate) fn corrupt(operation: &'static str, what: impl Into<String>) -> StoreError {
    StoreError::new(Kind::Corrupt, Class::Permanent, operation, what)
}

/// Kind, class, and what to do about it.
fn classify(answer: &DbError) -> (Kind, Class, &'static str) {
    use Class::{Permanent, Transient, Unavailable};
    let code = answer.code();
    if code.code() == "TG400" {
        (Kind::Refused, Permanent, "")
    } else if code.code() == "TG410" {
        (Kind::WentBack, Permanent, "")
    } else if code.code() == "TG429" {
        (Kind::Full, Transient, "")
    } else if *code == SqlState::READ_ONLY_SQL_TRANSACTION {
        (Kind::ReadOnly, Unavailable, "; connect to the primary")
    } else if *code == SqlState::DISK_FULL {
        (Kind::ReadOnly, Unavailable, "; free space on the server")
    } else if SCHEMA.contains(code) {
        (Kind::SchemaOutdated, Permanent, "; run `tidegate migrate`")
    } else if *code == SqlState::INVALID_CATALOG_NAME {
        (Kind::BadAddress, Permanent, "; create it, or correct the URL")
    } else if LOGIN.contains(code) {
        (Kind::BadAddress, Permanent, "; check user and password in the URL")
    } else if AWAY.contains(code) || code.code().starts_with("08") {
        (Kind::Unreachable, Unavailable, "")
    } else if TEXT.contains(code) {
        (Kind::Corrupt, Permanent, "; the database's encoding and UTF-8 do not have the same texts")
    } else if *code == SqlState::QUERY_CANCELED {
        (Kind::Deadline, Transient, "; whether it took effect is unknown")
    } else if code.code().starts_with("40") || *code == SqlState::LOCK_NOT_AVAILABLE {
        (Kind::Other, Transient, "")
    } else if code.code().starts_with("53") {
        (Kind::Other, Unavailable, "")
    } else {
        (Kind::Other, Permanent, "")
    }
}

/// A name of the schema is missing.
const SCHEMA: [SqlState; 5] = [
    SqlState::UNDEFINED_FUNCTION,
    SqlState::UNDEFINED_TABLE,
    SqlState::INVALID_SCHEMA_NAME,
    SqlState::UNDEFINED_COLUMN,
    SqlState::UNDEFINED_OBJECT,
];

/// A text cannot be converted.
const TEXT: [SqlState; 2] =
    [SqlState::UNTRANSLATABLE_CHARACTER, SqlState::CHARACTER_NOT_IN_REPERTOIRE];

const LOGIN: [SqlState; 2] =
    [SqlState::INVALID_PASSWORD, SqlState::INVALID_AUTHORIZATION_SPECIFICATION];

/// The server takes no connections, or has just closed this one.
const AWAY: [SqlState; 4] = [
    SqlState::ADMIN_SHUTDOWN,
    SqlState::CRASH_SHUTDOWN,
    SqlState::CANNOT_CONNECT_NOW,
    SqlState::TOO_MANY_CONNECTIONS,
];

fn said(answer: &DbError) -> String {
    format!("PostgreSQL says: {} ({})", answer.message(), answer.code().code())
}

fn is_broken(error: &tokio_postgres::Error) -> bool {
    error.is_closed() || error.source().is_some_and(|source| source.is::<io::Error>())
}

/// The cause in plain words: the outer layers only say that there is one.
fn root(error: &tokio_postgres::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}
