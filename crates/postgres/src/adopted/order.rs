//! In which order rows are delivered, as far as a table can tell.

use tidegate_core::outbox::KeyOrder;

/// The order that a table can express.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Oldest first by these columns, within each key if there is one.
    ByColumns(Vec<String>),
    /// None: the table has nothing that tells which row is older.
    None,
}

impl Order {
    /// What is promised by it.
    pub(super) fn promise(&self) -> KeyOrder {
        match self {
            Self::ByColumns(columns) => KeyOrder::If(
                format!(
                    "the values of {} grow with commits: a row that is committed after a later one was read comes \
                     after it",
                    columns.join(", ")
                )
                .into(),
            ),
            Self::None => KeyOrder::Never(
                "the table has no column that tells which row is older; add a time stamp and name it in `order`"
                    .into(),
            ),
        }
    }
}
