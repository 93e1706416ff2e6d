use super::*;
use crate::adopted::{
    mapping::{Done, Mapping, Pending},
    table::Index,
};

const EVIL: &str = r#"x"; drop table t; --"#;

fn table_with(columns: &[&str]) -> Table {
    let column = |name: &&str| Column {
        name: (*name).to_owned(),
        plain: (*name).to_owned(),
        kind: "text".to_owned(),
        exact_kind: "character varying(20)".to_owned(),
        is_not_null: true,
    };
    let unique =
        Index { is_unique: true, columns: vec![Some(columns[0].to_owned())], predicate: None };
    Table {
        schema: "public".to_owned(),
        name: EVIL.to_owned(),
        adopted: "public.evil".to_owned(),
        columns: columns.iter().map(column).collect(),
        indexes: vec![unique],
        ..Table::default()
    }
}

fn evil_plan() -> Plan {
    let own = || EVIL.to_owned();
    let mapping = Mapping {
        id: Some(vec![own()]),
        order: Some(vec![own()]),
        pending: Some(Pending::Equal { column: own(), value: "'; drop table t; --".to_owned() }),
        done: Some(Done::Set { column: own(), value: "{table}".to_owned() }),
        topic_prefix: Some("' || {table}".to_owned()),
        topic: Some(vec![own()]),
        payload: Some(own()),
        filter: [(own(), "$1; --".to_owned())].into(),
        ..Mapping::default()
    };
    Plan::new(mapping, table_with(&[EVIL])).unwrap()
}

/// What is left of a statement without comments and quoted identifiers.
fn skeleton(statement: &str) -> String {
    let lines = statement.lines().filter(|line| !line.starts_with("--"));
    lines.collect::<Vec<_>>().join("\n").split('"').step_by(2).collect()
}

#[test]
fn an_identifier_cannot_leave_its_quotes() {
    let statements = Statements::new(&evil_plan());
    for statement in [&statements.claim, &statements.settle, &statements.drop_dead] {
        let skeleton = skeleton(statement);
        assert!(!skeleton.contains("drop table"), "{skeleton}");
        assert!(statement.contains(r#""x""; drop table t; --""#));
    }
}

#[test]
fn values_are_parameters_and_stay_as_they_are() {
    let statements = Statements::new(&evil_plan());
    let values = ["'; drop table t; --", "$1; --", "' || {table}", "{table}"];
    assert_eq!(statements.values, values);
    assert!(!statements.claim.contains("' ||") && !statements.settle.contains('{'));
}

#[test]
fn a_row_with_several_id_columns_is_known_by_all_of_them() {
    let mapping = Mapping {
        id: Some(vec!["a".to_owned(), "b".to_owned()]),
        pending: Some(Pending::Row),
        done: Some(Done::Delete),
        topic_prefix: Some("all".to_owned()),
        payload: Some("b".to_owned()),
        ..Mapping::default()
    };
    let plan = Plan::new(mapping, table_with(&["a", "b"])).unwrap();
    assert_eq!(row_key(&plan), r#"jsonb_build_array(t."a"::text, t."b"::text)::text"#);
    let same =
        r#"t."a" = (d.row_key::jsonb ->> 0)::text and t."b" = (d.row_key::jsonb ->> 1)::text"#;
    assert_eq!(same_row(&plan, "d"), same);
}
