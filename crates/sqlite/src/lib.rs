//! The embedded store: SQLite.
