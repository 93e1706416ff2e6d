//! Texts of databases that are not in UTF-8. A database of somebody else may be in any encoding, and one text that
//! cannot be converted makes the server refuse a whole statement. So such texts are read as bytes, and decoded here:
//! a row with one that cannot be decoded is set aside alone.

use super::{Adopted, resolve::Plan};
use crate::decode::get;
use std::collections::{HashMap, HashSet};
use tidegate_core::{Kind, StoreError};
use tokio_postgres::{
    Row,
    types::{FromSql, Type},
};

const OPERATION: &str = "read adopted table";

/// How a database encodes texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Encoding {
    #[default]
    Utf8,
    /// The server can convert every text that it has.
    Latin1,
    /// `SQL_ASCII`: texts are whatever bytes were written.
    Unknown,
    /// The server can convert most texts.
    Other(String),
}

impl Encoding {
    pub(super) fn of(name: &str) -> Self {
        match name {
            "UTF8" => Self::Utf8,
            "LATIN1" => Self::Latin1,
            "SQL_ASCII" => Self::Unknown,
            other => Self::Other(other.to_owned()),
        }
    }

    /// Whether texts are read as bytes.
    pub(super) fn is_raw(&self) -> bool {
        matches!(self, Self::Unknown | Self::Other(_))
    }

    /// A text as the database can store it: what others say may have characters that it does not know.
    pub(super) fn fit(&self, text: &str) -> String {
        match self {
            Self::Utf8 | Self::Unknown => text.to_owned(),
            Self::Latin1 | Self::Other(_) => escape(text.chars()),
        }
    }

    /// Why a part of a row is not read.
    pub(super) fn problem(&self, what: &str) -> String {
        match self {
            Self::Other(name) => format!("its {what} cannot be converted from {name} to UTF-8"),
            _ => format!(
                "its {what} is not UTF-8, and the database's encoding, SQL_ASCII, does not say what it is"
            ),
        }
    }
}

fn escape(characters: impl Iterator<Item = char>) -> String {
    let each = characters.map(|it| match it.is_ascii() {
        true => it.to_string(),
        false => it.escape_unicode().to_string(),
    });
    each.collect()
}

/// A text of a row, or the bytes of one that cannot be decoded.
pub(super) enum Text {
    Read(String),
    Bytes(Vec<u8>),
}

impl Text {
    /// For people: bytes that are not ASCII are written as numbers.
    pub(super) fn shown(self) -> String {
        match self {
            Self::Read(text) => text,
            Self::Bytes(bytes) => bytes.escape_ascii().to_string(),
        }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Read(text) => text.into_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// Decodes the texts of some rows.
pub(super) struct Texts<'a> {
    encoding: &'a Encoding,
    /// What the server made of bytes; nothing of those that it cannot convert.
    converted: HashMap<Vec<u8>, Option<String>>,
}

impl Texts<'_> {
    /// A column that is a text, or its bytes.
    pub(super) fn get(&self, row: &Row, column: &str) -> Result<Option<Text>, StoreError> {
        if self.encoding.is_raw() {
            return Ok(get::<Option<Vec<u8>>>(OPERATION, row, column)?.map(|it| self.decode(it)));
        }
        Ok(get::<Option<String>>(OPERATION, row, column)?.map(Text::Read))
    }

    /// A column that is an array of them.
    pub(super) fn get_all(&self, row: &Row, column: &str) -> Result<Vec<Option<Text>>, StoreError> {
        fn all<'r, T: FromSql<'r>>(
            row: &'r Row,
            column: &str,
        ) -> Result<Vec<Option<T>>, StoreError> {
            get(OPERATION, row, column)
        }
        if self.encoding.is_raw() {
            let values = all::<Vec<u8>>(row, column)?;
            return Ok(values.into_iter().map(|it| it.map(|it| self.decode(it))).collect());
        }
        Ok(all::<String>(row, column)?.into_iter().map(|it| it.map(Text::Read)).collect())
    }

    fn decode(&self, bytes: Vec<u8>) -> Text {
        let known = match self.encoding {
            Encoding::Other(_) if !bytes.is_ascii() => {
                self.converted.get(&bytes).cloned().flatten()
            }
            _ => str::from_utf8(&bytes).ok().map(str::to_owned),
        };
        known.map_or(Text::Bytes(bytes), Text::Read)
    }
}

impl Adopted {
    /// What decodes the texts of these rows. The server is only asked about texts that are not ASCII.
    pub(super) async fn texts(&self, rows: &[Row]) -> Result<Texts<'_>, StoreError> {
        let encoding = &self.plan.table.encoding;
        let converted = match encoding {
            Encoding::Other(name) => self.convert(name, foreign(&self.plan, rows)?).await?,
            _ => HashMap::new(),
        };
        Ok(Texts { encoding, converted })
    }

    /// One that cannot be converted makes the server refuse all: then halves are tried, until it is alone.
    async fn convert(
        &self,
        encoding: &str,
        values: Vec<Vec<u8>>,
    ) -> Result<HashMap<Vec<u8>, Option<String>>, StoreError> {
        let mut converted = HashMap::new();
        let mut parts = vec![values];
        while let Some(mut part) = parts.pop() {
            if part.is_empty() {
                continue;
            }
            let params = [(&part as _, Type::BYTEA_ARRAY), (&encoding as _, Type::TEXT)];
            let sql = include_str!("../sql/adopted/convert.sql");
            match self.pool.query(self.pool.leased(OPERATION), sql, &params).await {
                Ok(rows) => {
                    let texts = rows.iter().map(|row| get::<Vec<u8>>(OPERATION, row, "text"));
                    let texts = texts.collect::<Result<Vec<_>, _>>()?;
                    let texts = texts.into_iter().map(|text| String::from_utf8(text).ok());
                    converted.extend(part.into_iter().zip(texts));
                }
                Err(error) if error.kind() != Kind::Corrupt => return Err(error),
                Err(_) if part.len() == 1 => {
                    converted.extend(part.into_iter().map(|it| (it, None)))
                }
                Err(_) => {
                    let half = part.split_off(part.len() / 2);
                    parts.extend([part, half]);
                }
            }
        }
        Ok(converted)
    }
}

/// The texts of rows that are not ASCII, each once.
fn foreign(plan: &Plan, rows: &[Row]) -> Result<Vec<Vec<u8>>, StoreError> {
    let mut found: HashSet<Vec<u8>> = HashSet::new();
    let payload = (plan.payload.kind != "bytea").then_some("payload");
    for row in rows {
        for column in ["topic", "key", "header_map"].into_iter().chain(payload) {
            found.extend(get::<Option<Vec<u8>>>(OPERATION, row, column)?);
        }
        let values: Option<Vec<Option<Vec<u8>>>> = get(OPERATION, row, "header_values")?;
        found.extend(values.unwrap_or_default().into_iter().flatten());
    }
    Ok(found.into_iter().filter(|bytes| !bytes.is_ascii()).collect())
}

/// A payload, and whether it could be decoded. Bytes are what they are.
pub(super) fn payload(
    plan: &Plan,
    texts: &Texts<'_>,
    row: &Row,
) -> Result<(Option<Vec<u8>>, bool), StoreError> {
    if !plan.table.encoding.is_raw() || plan.payload.kind == "bytea" {
        return Ok((get(OPERATION, row, "payload")?, true));
    }
    let text = texts.get(row, "payload")?;
    // A text of unknown encoding could be passed on as it is, but JSON could not, and a sink may refuse both.
    let is_read = !matches!(text, Some(Text::Bytes(_)));
    Ok((text.map(Text::into_bytes), is_read))
}
