//! In which order rows are delivered, as far as a table can tell.

use std::fmt;

/// The order that a table can express.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Oldest first by these columns, within each key if there is one.
    ByColumns(Vec<String>),
    /// None: the table has nothing that tells which row is older.
    None,
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByColumns(columns) => write!(
                f,
                "messages of a key are delivered in the order of {}; a row that is committed after a later \
                 one was read comes after it",
                columns.join(", ")
            ),
            Self::None => f.write_str(
                "the table has no column that tells which row is older: messages are delivered in no order; \
                 add a time stamp and name it in `order`",
            ),
        }
    }
}
