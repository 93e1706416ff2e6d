//! A mapping and a table become a plan in which every column is known to exist.

use super::{
    mapping::{Done, Mapping, PayloadKind, Pending, Preset, refused},
    table::{Column, Table},
};
use std::{collections::BTreeMap, time::Duration};
use tidegate_core::StoreError;

/// A table and how its rows are messages, all checked against the catalog.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub table: Table,
    pub id: Vec<Column>,
    pub order: Vec<Column>,
    pub pending: Marked,
    pub done: Write,
    pub topic: Vec<Column>,
    pub topic_prefix: String,
    pub key: Vec<Column>,
    /// The key does not name what a row is about in the system that it goes to.
    pub key_orders_only: bool,
    pub payload: Column,
    pub payload_kind: PayloadKind,
    /// A payload need not be what its content type declares.
    pub takes_any_payload: bool,
    /// Headers of messages that do not have them.
    pub default_headers: &'static [(&'static str, &'static str)],
    /// Headers that are of no meaning outside of the application.
    pub local_headers: &'static [&'static str],
    pub headers: Vec<(String, Column)>,
    pub headers_column: Option<Column>,
    pub attempts: Option<Column>,
    pub error: Option<Column>,
    pub published_at: Option<Column>,
    pub filter: Vec<(Column, String)>,
    pub min_age: Option<Duration>,
}

/// Which rows are pending.
#[derive(Clone, Debug)]
pub(super) enum Marked {
    Null(Column),
    Equal(Column, String),
    Row,
}

/// What makes a row done.
#[derive(Clone, Debug)]
pub(super) enum Write {
    Now(Column),
    Set(Column, String),
    Delete,
}

impl Plan {
    pub(super) fn new(mapping: Mapping, table: Table) -> Result<Self, StoreError> {
        let mapping = match mapping.preset {
            Some(preset) => mapping.over(preset.mapping(&table)),
            None => mapping,
        };
        let find = Find(&table);
        let operation = mapping.operation.map(|column| ("operation".to_owned(), column));
        let headers: BTreeMap<String, String> =
            operation.into_iter().chain(mapping.headers).collect();
        let order = find.all(&mapping.order.unwrap_or_default(), "order")?;
        let time = order.first().filter(|column| column.is_time()).cloned();
        let payload = needed(mapping.payload, "payload")?;
        let plan = Self {
            id: find.all(&needed(mapping.id, "id")?, "id")?,
            pending: find.pending(needed(mapping.pending, "pending")?)?,
            done: find.done(needed(mapping.done, "done")?)?,
            topic: find.all(&mapping.topic.unwrap_or_default(), "topic")?,
            topic_prefix: mapping.topic_prefix.unwrap_or_default(),
            key: find.all(&mapping.key.unwrap_or_default(), "key")?,
            key_orders_only: mapping.preset.is_some_and(Preset::names_entities_itself),
            payload: table.column(&payload, "payload")?.clone(),
            payload_kind: mapping.payload_kind.unwrap_or_default(),
            takes_any_payload: mapping.preset.is_some_and(Preset::takes_any_payload),
            default_headers: mapping.preset.map_or(&[], Preset::default_headers),
            local_headers: mapping.preset.map_or(&[], Preset::local_headers),
            headers: find.named(headers, "headers")?,
            headers_column: find.maybe(mapping.headers_column, "headers_column")?,
            attempts: find.maybe(mapping.attempts, "attempts")?,
            error: find.maybe(mapping.error, "error")?,
            published_at: find.maybe(mapping.published_at, "published_at")?.or(time),
            filter: find.values(mapping.filter)?,
            min_age: mapping.min_age,
            order,
            table: table.clone(),
        };
        plan.check()?;
        Ok(plan)
    }

    /// Refuses what would lose messages or deliver them without end.
    fn check(&self) -> Result<(), StoreError> {
        let table = &self.table.adopted;
        if self.topic.is_empty() && self.topic_prefix.is_empty() {
            return Err(refused(format!(
                "messages of {table} have no topic: name its columns in `topic`, or give one to all of \
                 them with `topic_prefix`"
            )));
        }
        if self.min_age.is_some() && self.published_at.is_none() {
            return Err(refused(format!(
                "`min_age` needs to know how old a row of {table} is: name the column with its time in \
                 `published_at`"
            )));
        }
        if !self.is_identified() {
            let names: Vec<&str> = self.id.iter().map(|it| it.name.as_str()).collect();
            let names = names.join(", ");
            return Err(refused(format!(
                "({names}) does not identify a row of {table}: name columns in `id` that are not null and \
                 have a unique index without a condition"
            )));
        }
        let ends = match (&self.pending, &self.done) {
            (_, Write::Delete) => true,
            (Marked::Null(read), Write::Now(written) | Write::Set(written, _)) => {
                read.name == written.name
            }
            (Marked::Equal(read, before), Write::Set(written, after)) => {
                read.name == written.name && before != after
            }
            (Marked::Equal(..), Write::Now(_)) | (Marked::Row, _) => false,
        };
        if !ends {
            return Err(refused(format!(
                "a row of {table} that is done would still be pending, and be delivered again: let `done` \
                 change what `pending` looks at"
            )));
        }
        Ok(())
    }

    /// Whether no two rows have the same id, and each has one.
    fn is_identified(&self) -> bool {
        let has = |name: &str| self.id.iter().any(|it| it.name == name);
        let covers = |columns: &[Option<String>]| {
            columns.iter().all(|column| column.as_deref().is_some_and(has))
        };
        let mut indexes = self.table.indexes.iter();
        !self.id.is_empty()
            && self.id.iter().all(|column| column.is_not_null)
            && indexes.any(|it| it.is_unique && it.predicate.is_none() && covers(&it.columns))
    }
}

impl Mapping {
    /// What is said here goes before what a preset says.
    fn over(self, preset: Mapping) -> Mapping {
        let mut headers = preset.headers;
        headers.retain(|name, _| !self.headers.keys().any(|own| own.eq_ignore_ascii_case(name)));
        headers.extend(self.headers);
        Mapping {
            preset: self.preset,
            table: self.table.or(preset.table),
            id: self.id.or(preset.id),
            order: self.order.or(preset.order),
            pending: self.pending.or(preset.pending),
            done: self.done.or(preset.done),
            topic: self.topic.or(preset.topic),
            topic_prefix: self.topic_prefix.or(preset.topic_prefix),
            key: self.key.or(preset.key),
            payload: self.payload.or(preset.payload),
            payload_kind: self.payload_kind.or(preset.payload_kind),
            headers,
            headers_column: self.headers_column.or(preset.headers_column),
            operation: self.operation.or(preset.operation),
            attempts: self.attempts.or(preset.attempts),
            error: self.error.or(preset.error),
            published_at: self.published_at.or(preset.published_at),
            filter: self.filter,
            min_age: self.min_age,
        }
    }
}

fn needed<T>(value: Option<T>, what: &str) -> Result<T, StoreError> {
    value.ok_or_else(|| refused(format!("a mapping without a preset must say `{what}`")))
}

/// Looks columns up.
struct Find<'a>(&'a Table);

impl Find<'_> {
    fn one(&self, name: &str, what: &str) -> Result<Column, StoreError> {
        self.0.column(name, what).cloned()
    }

    fn all(&self, names: &[String], what: &str) -> Result<Vec<Column>, StoreError> {
        names.iter().map(|name| self.one(name, what)).collect()
    }

    fn maybe(&self, name: Option<String>, what: &str) -> Result<Option<Column>, StoreError> {
        name.map(|name| self.one(&name, what)).transpose()
    }

    fn named(
        &self,
        headers: BTreeMap<String, String>,
        what: &str,
    ) -> Result<Vec<(String, Column)>, StoreError> {
        let column = |(header, name): (String, String)| Ok((header, self.one(&name, what)?));
        headers.into_iter().map(column).collect()
    }

    fn values(
        &self,
        filter: BTreeMap<String, String>,
    ) -> Result<Vec<(Column, String)>, StoreError> {
        let column = |(name, value): (String, String)| Ok((self.one(&name, "where")?, value));
        filter.into_iter().map(column).collect()
    }

    fn pending(&self, pending: Pending) -> Result<Marked, StoreError> {
        Ok(match pending {
            Pending::Null(column) => Marked::Null(self.one(&column, "pending")?),
            Pending::Equal { column, value } => Marked::Equal(self.one(&column, "pending")?, value),
            Pending::Row => Marked::Row,
        })
    }

    fn done(&self, done: Done) -> Result<Write, StoreError> {
        Ok(match done {
            Done::Now(column) => Write::Now(self.one(&column, "done")?),
            Done::Set { column, value } => Write::Set(self.one(&column, "done")?, value),
            Done::Delete => Write::Delete,
        })
    }
}
