//! What the database's catalog says about a table.

use super::{encoding::Encoding, mapping::refused};
use crate::{decode::get, pool::Pool};
use tidegate_core::StoreError;
use tokio_postgres::{Row, types::Type};

const OPERATION: &str = "adopt table";

/// A table as the catalog knows it.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub schema: String,
    pub name: String,
    /// Schema and name as SQL writes them: what people and leases know it by.
    pub adopted: String,
    pub columns: Vec<Column>,
    pub indexes: Vec<Index>,
    /// How its texts are encoded.
    pub encoding: Encoding,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Column {
    pub name: String,
    /// Its name as SQL writes it.
    pub plain: String,
    /// Its type, and the same with its length.
    pub kind: String,
    pub exact_kind: String,
    pub is_not_null: bool,
}

/// An index that can be used.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    pub is_unique: bool,
    /// An expression is `None`.
    pub columns: Vec<Option<String>>,
    pub predicate: Option<String>,
}

impl Table {
    /// The first of these tables that exists.
    pub(super) async fn find(pool: &Pool, names: &[&str]) -> Result<Self, StoreError> {
        for name in names {
            let sql = include_str!("../sql/adopted/columns.sql");
            let rows = pool.query(OPERATION, sql, &[(name, Type::TEXT)]).await?;
            if let Some(first) = rows.first() {
                return Self::read(pool, first, &rows).await;
            }
        }
        let names = names.join("` or `");
        Err(refused(format!(
            "there is no table `{names}`; name it with its schema in `table`, such as `shop.outbox`, and \
             in double quotes where it has capitals"
        )))
    }

    async fn read(pool: &Pool, first: &Row, rows: &[Row]) -> Result<Self, StoreError> {
        let adopted: String = get(OPERATION, first, "adopted")?;
        if !get::<bool>(OPERATION, first, "is_table")? {
            return Err(refused(format!("{adopted} is no table; name the table behind it")));
        }
        let oid: u32 = get(OPERATION, first, "oid")?;
        let sql = include_str!("../sql/adopted/indexes.sql");
        let indexes = pool.query(OPERATION, sql, &[(&oid, Type::OID)]).await?;
        Ok(Self {
            schema: get(OPERATION, first, "schema")?,
            name: get(OPERATION, first, "name")?,
            adopted,
            columns: rows.iter().map(column).collect::<Result<_, _>>()?,
            indexes: indexes.iter().map(index).collect::<Result<_, _>>()?,
            encoding: Encoding::of(get(OPERATION, first, "encoding")?),
        })
    }

    pub(super) fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|it| it.name == column)
    }

    pub(super) fn is_bytes(&self, column: &str) -> bool {
        self.columns.iter().any(|it| it.name == column && it.kind == "bytea")
    }

    /// A column that must be there; `what` it is for.
    pub(super) fn column(&self, name: &str, what: &str) -> Result<&Column, StoreError> {
        if let Some(column) = self.columns.iter().find(|it| it.name == name) {
            return Ok(column);
        }
        let advice = match self.columns.iter().find(|it| it.name.eq_ignore_ascii_case(name)) {
            Some(near) => format!("there is `{}`: names are taken in their own case", near.name),
            None => {
                let names: Vec<&str> = self.columns.iter().map(|it| it.name.as_str()).collect();
                format!("it has {}", names.join(", "))
            }
        };
        let table = &self.adopted;
        Err(refused(format!(
            "{table} has no column `{name}`, which is to be its {what}; say which column that is with \
             `{what}` in the mapping; {advice}"
        )))
    }
}

impl Column {
    pub(super) fn is_time(&self) -> bool {
        self.kind.starts_with("timestamp")
    }
}

fn column(row: &Row) -> Result<Column, StoreError> {
    Ok(Column {
        name: get(OPERATION, row, "column")?,
        plain: get(OPERATION, row, "plain")?,
        kind: get(OPERATION, row, "type")?,
        exact_kind: get(OPERATION, row, "exact_type")?,
        is_not_null: get(OPERATION, row, "is_not_null")?,
    })
}

fn index(row: &Row) -> Result<Index, StoreError> {
    Ok(Index {
        is_unique: get(OPERATION, row, "is_unique")?,
        columns: get(OPERATION, row, "columns")?,
        predicate: get(OPERATION, row, "predicate")?,
    })
}
