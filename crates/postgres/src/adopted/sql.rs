//! Statements about a table whose name and columns are only known when it is opened.
//!
//! Identifiers are those that the catalog gave, quoted; values of a mapping are never part of a
//! statement but elements of its parameter `$2`, an array. In every statement `$1` is the name of the
//! adopted table in the side tables.

use super::{
    advice::is_indexed,
    encoding::Encoding,
    resolve::{Marked, Plan, Write},
    table::{Column, Table},
};

/// All statements that depend on the mapping, and the values of their `$2`.
pub(super) struct Statements {
    pub values: Vec<String>,
    pub claim: String,
    pub settle: String,
    pub look: String,
    pub look_at: String,
    /// Whether rows can be read from a place on.
    pub has_front: bool,
    pub outstanding: String,
    pub row: String,
    pub drop_dead: String,
    /// With texts as they are.
    pub shown: Shown,
    /// With texts whose bytes are written as numbers where they are not ASCII: one that cannot be converted makes
    /// the server refuse the others.
    pub shown_as_ascii: Shown,
    pub shadow_ties: String,
    pub shadow_rows: String,
}

/// Statements that show texts of the table to people.
pub(super) struct Shown {
    pub status: String,
    pub stuck: String,
    pub shadow_topics: String,
}

impl Shown {
    fn new(parts: &Parts) -> Self {
        Self {
            status: parts.fill(include_str!("../sql/adopted/status.sql")),
            stuck: parts.fill(include_str!("../sql/adopted/stuck.sql")),
            shadow_topics: parts.fill(include_str!("../sql/adopted/shadow_topics.sql")),
        }
    }
}

impl Statements {
    pub(super) fn new(plan: &Plan) -> Self {
        let mut parts = Parts::default();
        parts.read(plan);
        parts.write(plan);
        let shown = Shown::new(&parts);
        parts.show_as_ascii();
        Self {
            shown,
            shown_as_ascii: Shown::new(&parts),
            claim: parts.fill(include_str!("../sql/adopted/claim.sql")),
            settle: parts.fill(include_str!("../sql/adopted/settle.sql")),
            look: parts.fill(include_str!("../sql/adopted/look.sql")),
            look_at: parts.fill(include_str!("../sql/adopted/look_at.sql")),
            has_front: has_places(plan),
            outstanding: parts.fill(include_str!("../sql/adopted/outstanding.sql")),
            row: parts.fill(include_str!("../sql/adopted/row.sql")),
            drop_dead: parts.fill(include_str!("../sql/adopted/drop_dead.sql")),
            shadow_ties: parts.fill(include_str!("../sql/adopted/shadow_ties.sql")),
            shadow_rows: parts.fill(include_str!("../sql/adopted/shadow_rows.sql")),
            values: parts.values,
        }
    }
}

/// What stands for each `{name}` in a statement. The adopted table is `t` in all of them.
#[derive(Default)]
struct Parts {
    named: Vec<(&'static str, String)>,
    values: Vec<String>,
}

impl Parts {
    /// What is needed to read rows.
    fn read(&mut self, plan: &Plan) {
        let pending = self.pending(&plan.pending);
        let equal = |parts: &mut Self, column: &Column, value: &String| {
            format!("{} = {}", quoted(column), parts.value(value, &column.kind))
        };
        let filters: Vec<String> =
            plan.filter.iter().map(|(column, value)| equal(self, column, value)).collect();
        let filter = or_else(filters.join(" and "), "true");
        let same_row = same_row(plan, "a");
        let chosen = match plan.filter.is_empty() {
            true => "true".to_owned(),
            false => {
                let table = table(&plan.table);
                let not = format!("({filter}) is not true");
                format!("not exists (select from {table} t where {same_row} and {not})")
            }
        };
        let aged = self.aged(plan);
        let (topic, key) = (self.topic(plan), joined(&plan.key, ":"));
        let (published, payload, encoding) = (published(plan), payload(plan), &plan.table.encoding);
        let values: Vec<String> =
            plan.headers.iter().map(|(_, column)| read(encoding, text(column))).collect();
        let texts = if encoding.is_raw() { "bytea[]" } else { "text[]" };
        let headers = format!("array[{}]::{texts}", values.join(", "));
        let map = plan.headers_column.as_ref().map_or("null::text".to_owned(), text);
        let columns = [
            (row_key(plan), "row_key"),
            (read(encoding, topic.clone()), "topic"),
            (read(encoding, key.clone()), "key"),
            (payload, "payload"),
            (headers, "header_values"),
            (read(encoding, map), "header_map"),
            (published.clone(), "published_ms"),
        ];
        let columns: Vec<String> =
            columns.iter().map(|(expression, name)| format!("{expression} as {name}")).collect();
        self.named.extend([
            ("table", table(&plan.table)),
            ("pending", pending),
            ("filter", filter),
            ("aged", aged),
            ("chosen", chosen),
            ("row_key", row_key(plan)),
            ("no_headers", format!("null::{texts}")),
            ("topic_shown", topic.clone()),
            ("aside_topic_shown", "a.topic".to_owned()),
            ("key_shown", key.clone()),
            ("same_row", same_row),
            ("topic", topic),
            ("key", key),
            ("published", published),
            ("columns", columns.join(", ")),
            ("bytes", bytes(plan)),
            ("order", order(plan)),
            ("order_columns", list(&plan.order)),
            ("place", place(plan)),
            ("from_place", from_place(plan, 3, 4)),
            ("from_front", from_place(plan, 13, 14)),
            ("at_place", compared(plan, "=", 3)),
            ("before_front", before_place(plan, 6, 7)),
        ]);
    }

    /// What is written to rows: to those that are done, and to those that failed.
    fn write(&mut self, plan: &Plan) {
        let template = match &plan.done {
            Write::Delete => include_str!("../sql/adopted/done_delete.sql"),
            Write::Now(_) | Write::Set(..) => include_str!("../sql/adopted/done_update.sql"),
        };
        let mut done = self.alike(plan, "d");
        match &plan.done {
            Write::Delete => {}
            Write::Now(column) => {
                let now = format!("now()::{}", column.kind);
                done.named.extend([("column", bare(column)), ("value", now)]);
            }
            Write::Set(column, value) => {
                let value = self.value(value, &column.kind);
                done.named.extend([("column", bare(column)), ("value", value)]);
            }
        }
        let done = done.fill(template);
        let failed = self.failed(plan);
        self.named.extend([("done", done), ("failed", failed)]);
    }

    fn show_as_ascii(&mut self) {
        let shown = self.named.iter_mut().filter(|(name, _)| name.ends_with("_shown"));
        shown.for_each(|(_, part)| *part = ascii(std::mem::take(part)));
    }

    fn failed(&self, plan: &Plan) -> String {
        let attempts = plan.attempts.as_ref().map(|column| {
            let (name, before, kind) = (bare(column), quoted(column), &column.kind);
            format!("{name} = greatest(coalesce({before}, 0), i.attempts)::{kind}")
        });
        // With its length in the type, what is too long is cut and not refused.
        let error = plan
            .error
            .as_ref()
            .map(|column| format!("{} = i.reason::{}", bare(column), column.exact_kind));
        let columns: Vec<String> = attempts.into_iter().chain(error).collect();
        if columns.is_empty() {
            return "select".to_owned();
        }
        let mut failed = self.alike(plan, "i");
        failed.named.push(("columns", columns.join(", ")));
        failed.fill(include_str!("../sql/adopted/failed.sql"))
    }

    /// Table and state, for a row that something else names.
    fn alike(&self, plan: &Plan, other: &str) -> Self {
        let same = |name: &'static str| {
            let part = self.named.iter().find(|(known, _)| *known == name);
            (name, part.map(|(_, part)| part.clone()).unwrap_or_default())
        };
        let named = vec![same("table"), same("pending"), ("same_row", same_row(plan, other))];
        Self { named, values: Vec::new() }
    }

    /// A value of the mapping, as an element of `$2`.
    fn value(&mut self, value: &str, kind: &str) -> String {
        self.values.push(value.to_owned());
        format!("($2)[{}]::{kind}", self.values.len())
    }

    fn pending(&mut self, pending: &Marked) -> String {
        match pending {
            Marked::Null(column) => format!("{} is null", quoted(column)),
            Marked::Equal(column, value) => {
                format!("{} = {}", quoted(column), self.value(value, &column.kind))
            }
            Marked::Row => "true".to_owned(),
        }
    }

    /// Whether a row is old enough. One without a time is.
    fn aged(&mut self, plan: &Plan) -> String {
        let (Some(age), Some(column)) = (plan.min_age, &plan.published_at) else {
            return "true".to_owned();
        };
        let age = self.value(&format!("{} ms", age.as_millis()), "interval");
        let epoch = |time: &str| format!("extract(epoch from {time})");
        let (published, now) = (epoch(&quoted(column)), epoch(&format!("now() - {age}")));
        format!("({published} <= {now}) is not false")
    }

    fn topic(&mut self, plan: &Plan) -> String {
        let columns = joined(&plan.topic, ".");
        match (plan.topic_prefix.as_str(), plan.topic.is_empty()) {
            ("", _) => columns,
            (prefix, true) => self.value(prefix, "text"),
            (prefix, false) => format!("({} || {columns})", self.value(prefix, "text")),
        }
    }

    /// Puts the parts in their places. What they contain is not looked at again.
    fn fill(&self, template: &str) -> String {
        let mut filled = String::with_capacity(template.len() * 2);
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, tail) = after.split_once('}').unwrap_or((after, ""));
            let part = self.named.iter().find(|(known, _)| *known == name);
            filled.push_str(before);
            filled.push_str(part.map_or("", |(_, part)| part));
            rest = tail;
        }
        filled + rest
    }
}

/// An identifier, whatever its characters.
fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn table(table: &Table) -> String {
    format!("{}.{}", identifier(&table.schema), identifier(&table.name))
}

fn bare(column: &Column) -> String {
    identifier(&column.name)
}

fn quoted(column: &Column) -> String {
    format!("t.{}", bare(column))
}

fn text(column: &Column) -> String {
    format!("{}::text", quoted(column))
}

fn list(columns: &[Column]) -> String {
    columns.iter().map(quoted).collect::<Vec<_>>().join(", ")
}

fn or_else(part: String, otherwise: &str) -> String {
    if part.is_empty() { otherwise.to_owned() } else { part }
}

/// Values joined by a separator, without those that are null; null if nothing is left.
fn joined(columns: &[Column], separator: &str) -> String {
    if columns.is_empty() {
        return "null::text".to_owned();
    }
    let texts: Vec<String> = columns.iter().map(text).collect();
    format!("nullif(concat_ws('{separator}', {}), '')", texts.join(", "))
}

/// What a row is known by in the side tables: its id as text, or as an array of texts.
fn row_key(plan: &Plan) -> String {
    let part = |column: &Column| match plan.table.encoding.is_raw() {
        true => ascii(text(column)),
        false => text(column),
    };
    match &plan.id[..] {
        [column] => part(column),
        columns => {
            let texts: Vec<String> = columns.iter().map(part).collect();
            format!("jsonb_build_array({})::text", texts.join(", "))
        }
    }
}

/// The bytes of a text, whatever its encoding: nothing is converted.
fn bytes_of(text: String) -> String {
    format!(r"decode(replace({text}, E'\\', E'\\\\'), 'escape')")
}

/// A text in which all bytes that are not ASCII are written as numbers; `decode` takes them back.
fn ascii(text: String) -> String {
    format!("encode({}, 'escape')", bytes_of(text))
}

/// A text, or its bytes where it might not be possible to convert it.
fn read(encoding: &Encoding, text: String) -> String {
    if encoding.is_raw() { bytes_of(text) } else { text }
}

/// Whether `t` is the row that `other` names by its `row_key`. The id's index serves it.
fn same_row(plan: &Plan, other: &str) -> String {
    let same = |column: &Column, key: String| {
        let (name, kind) = (quoted(column), &column.kind);
        match plan.table.encoding.is_raw() {
            true => {
                let text = format!("convert_from(decode({key}, 'escape'), getdatabaseencoding())");
                format!("{name} = {text}::{kind}")
            }
            false => format!("{name} = {key}::{kind}"),
        }
    };
    match &plan.id[..] {
        [column] => same(column, format!("{other}.row_key")),
        columns => {
            let part = |(n, column): (usize, &Column)| {
                same(column, format!("({other}.row_key::jsonb ->> {n})"))
            };
            columns.iter().enumerate().map(part).collect::<Vec<_>>().join(" and ")
        }
    }
}

/// Rows that one transaction wrote often have the same time: then the number of the command that wrote
/// them decides, and then where they are. Nothing is promised about these, but they are better than chance.
fn order(plan: &Plan) -> String {
    match plan.order.is_empty() {
        true => String::new(),
        false => format!("order by {}, t.cmin::text::bigint, t.ctid", list(&plan.order)),
    }
}

/// Whether a place in the order can be written down, and an index finds it.
fn has_places(plan: &Plan) -> bool {
    let is_plain = |column: &Column| {
        let kind = column.kind.as_str();
        column.is_time() || ["bigint", "integer", "smallint", "uuid"].contains(&kind)
    };
    let is_written = |column: &Column| column.is_not_null && is_plain(column);
    !plan.order.is_empty() && plan.order.iter().all(is_written) && is_indexed(plan)
}

/// Where a row is in the order, as texts that no setting of the session changes.
fn place(plan: &Plan) -> String {
    let texts: Vec<String> = plan
        .order
        .iter()
        .map(|column| format!("to_jsonb({}) #>> '{{}}'", quoted(column)))
        .collect();
    format!("array[{}]::text[]", texts.join(", "))
}

/// The row's place compared with the one in a parameter.
fn compared(plan: &Plan, operator: &str, parameter: usize) -> String {
    if !has_places(plan) {
        return "true".to_owned();
    }
    let value =
        |(n, column): (usize, &Column)| format!("(${parameter})[{}]::{}", n + 1, column.kind);
    let values: Vec<String> = plan.order.iter().enumerate().map(value).collect();
    format!("({}) {operator} ({})", list(&plan.order), values.join(", "))
}

/// From the place in a parameter on, or behind it if the other one says so.
fn from_place(plan: &Plan, place: usize, after: usize) -> String {
    if !has_places(plan) {
        return "true".to_owned();
    }
    let (from, behind) = (compared(plan, ">=", place), compared(plan, ">", place));
    format!("(${place} is null or not ${after} and {from} or ${after} and {behind})")
}

/// The opposite.
fn before_place(plan: &Plan, place: usize, after: usize) -> String {
    let (before, up_to) = (compared(plan, "<", place), compared(plan, "<=", place));
    format!("(not ${after} and {before} or ${after} and {up_to})")
}

fn payload(plan: &Plan) -> String {
    match plan.payload.kind.as_str() {
        "bytea" => quoted(&plan.payload),
        _ if plan.table.encoding.is_raw() => bytes_of(text(&plan.payload)),
        _ => format!("convert_to({}, 'UTF8')", text(&plan.payload)),
    }
}

/// How long a payload is. For JSON as it is stored: its text would have to be made first.
fn bytes(plan: &Plan) -> String {
    let size = match plan.payload.kind.as_str() {
        "json" | "jsonb" => "pg_column_size",
        _ => "octet_length",
    };
    format!("coalesce({size}({}), 0)", quoted(&plan.payload))
}

/// Milliseconds since 1970; now, if the table has no time.
fn published(plan: &Plan) -> String {
    let now = "(extract(epoch from now()) * 1000)::bigint";
    match &plan.published_at {
        Some(column) => {
            let column = quoted(column);
            // Cut, as others write times with milliseconds.
            let known = format!("floor(extract(epoch from {column}) * 1000)::bigint");
            format!("coalesce(case when isfinite({column}) then {known} end, {now})")
        }
        None => now.to_owned(),
    }
}

#[cfg(test)]
mod tests;
