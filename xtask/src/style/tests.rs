use super::*;
use serde_json::json;

fn breaches(path: &str, text: &str) -> String {
    breaches_in(Path::new(path), text).join("\n")
}

#[test]
fn a_short_documented_file_breaks_nothing() {
    assert_eq!(breaches("crates/core/src/lib.rs", "//! What it is.\n"), "");
}

#[test]
fn a_source_file_says_what_it_is_for_and_a_test_need_not() {
    let without = "use std::fs;\n";
    assert!(breaches("crates/core/src/lease.rs", without).contains("begin with"));
    for exempt in ["crates/core/src/lease/tests.rs", "crates/cli/tests/run.rs", "notes.md"] {
        assert_eq!(breaches(exempt, without), "");
    }
}

#[test]
fn a_file_of_one_line_too_many_is_too_long() {
    let longest = format!("//!{}", "\n".repeat(MAX_LINES));
    assert_eq!(breaches("crates/core/src/lib.rs", &longest), "");
    assert!(breaches("crates/core/src/lib.rs", &format!("{longest}\n")).contains("501 lines"));
}

#[test]
fn a_machine_path_is_found_with_its_line_in_any_file() {
    for machine in MACHINE_PATHS {
        let text = format!("first\nsee {machine}notes\n");
        assert!(breaches("README.md", &text).contains("line 2 names"), "{machine}");
        assert_eq!(breaches("README.md", &format!("see crates{machine}notes\n")), "");
    }
}

#[test]
fn an_edge_over_a_boundary_is_forbidden_unless_it_is_for_tests() {
    let metadata = |kind: Value| {
        let edge = json!({ "name": "tokio", "kind": kind });
        json!({ "packages": [{ "name": "tidegate-core", "dependencies": [edge] }] })
    };
    let told = ["tidegate-core depends on tokio, which it must not know".to_owned()];
    assert_eq!(forbidden_edges(&metadata(Value::Null)), told);
    assert_eq!(forbidden_edges(&metadata("build".into())), told);
    assert!(forbidden_edges(&metadata("dev".into())).is_empty());
}

#[test]
fn every_boundary_names_a_package_that_exists() {
    let metadata = metadata().unwrap();
    let names: Vec<_> = array(&metadata, "packages").map(|p| p["name"].clone()).collect();
    for (from, _) in FORBIDDEN_EDGES {
        assert!(names.contains(&from.into()), "{from}");
    }
}
