//! What a table lacks, and the statement that mends it. Tidegate never carries it out by itself.

use super::{
    Adopted,
    resolve::{Marked, Plan, Write},
    table::Index,
};
use serde::Serialize;

/// Something that people should do about an adopted table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// What is wrong.
    pub problem: String,
    /// What mends it.
    pub ddl: String,
}

impl Adopted {
    /// What the table lacks, as it was when it was opened.
    pub fn advice(&self) -> Vec<Advice> {
        missing_index(&self.plan).into_iter().collect()
    }
}

/// Whether an index gives pending rows in their order.
pub(super) fn is_indexed(plan: &Plan) -> bool {
    let order: Vec<&str> = plan.order.iter().map(|column| column.name.as_str()).collect();
    plan.table.indexes.iter().any(|it| serves(it, plan, &order))
}

/// Every look for pending rows reads them in order; without an index it reads and sorts all of them.
fn missing_index(plan: &Plan) -> Option<Advice> {
    if plan.order.is_empty() || is_indexed(plan) {
        return None;
    }
    let table = &plan.table.adopted;
    let columns: Vec<&str> = plan.order.iter().map(|column| column.plain.as_str()).collect();
    let columns = columns.join(", ");
    let (rows, condition) = match condition(&plan.pending) {
        Some(condition) => (format!("rows where {condition}"), format!(" where {condition}")),
        None => ("rows".to_owned(), String::new()),
    };
    Some(Advice {
        problem: format!(
            "{table} has no index on ({columns}) for {rows}: every look reads and sorts all of them"
        ),
        ddl: format!("create index concurrently on {table} ({columns}){condition};"),
    })
}

/// Whether an index gives pending rows in their order. If the table keeps what is done, it must tell
/// pending rows apart: every look would go through all the others first.
fn serves(index: &Index, plan: &Plan, order: &[&str]) -> bool {
    let columns: Vec<&str> =
        index.columns.iter().map(|column| column.as_deref().unwrap_or_default()).collect();
    let keeps = !matches!(plan.done, Write::Delete);
    let tells = match &index.predicate {
        Some(predicate) => is_same(predicate, &plan.pending),
        None => !keeps,
    };
    let marked = match &plan.pending {
        Marked::Null(column) | Marked::Equal(column, _) => Some(column.name.as_str()),
        Marked::Row => None,
    };
    let after_mark = index.predicate.is_none()
        && columns.first().copied() == marked
        && columns.get(1..).is_some_and(|rest| rest.starts_with(order));
    columns.starts_with(order) && tells || after_mark
}

fn is_same(predicate: &str, pending: &Marked) -> bool {
    let found = essence(predicate);
    match pending {
        Marked::Null(column) => found == essence(&format!("{} is null", column.plain)),
        Marked::Equal(column, value) => {
            let name = &column.plain;
            let as_text = essence(&format!("{name} = {}", literal(value)));
            let bare = essence(&format!("{name} = {value}"));
            let short = match value.as_str() {
                "true" | "t" => essence(name),
                "false" | "f" => essence(&format!("not {name}")),
                _ => as_text.clone(),
            };
            [as_text, bare, short].contains(&found)
        }
        Marked::Row => false,
    }
}

/// A condition without its parentheses, spaces and casts, as the catalog adds them.
fn essence(condition: &str) -> String {
    let mut parts = condition.split("::");
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.map(|part| {
        let name = |c: char| c.is_alphanumeric() || c == '_' || c == ' ';
        let end = part.find(|c: char| !name(c)).unwrap_or(part.len());
        &part[end..]
    });
    let whole = rest.fold(first, |whole, part| whole + part);
    let kept = whole.chars().filter(|c| !matches!(c, '(' | ')' | ' '));
    kept.collect::<String>().to_lowercase()
}

fn condition(pending: &Marked) -> Option<String> {
    match pending {
        Marked::Null(column) => Some(format!("{} is null", column.plain)),
        Marked::Equal(column, value) => Some(format!("{} = {}", column.plain, literal(value))),
        Marked::Row => None,
    }
}

fn literal(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adopted::table::Column;

    fn column(name: &str) -> Column {
        Column { name: name.to_owned(), plain: name.to_owned(), ..Column::default() }
    }

    #[test]
    fn a_condition_is_recognized_as_the_catalog_writes_it() {
        let null = Marked::Null(column("processed_at"));
        assert!(is_same("(processed_at IS NULL)", &null));
        assert!(!is_same("(processed_at IS NOT NULL)", &null));
        let equal = |value: &str| Marked::Equal(column("state"), value.to_owned());
        assert!(is_same("((state)::text = 'new'::text)", &equal("new")));
        assert!(is_same("(state = 0)", &equal("0")) && is_same("(NOT state)", &equal("false")));
        assert!(!is_same("((state)::text = 'old'::text)", &equal("new")));
    }
}
