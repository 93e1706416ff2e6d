//! The rules of the source that no other tool knows, each with its reason.

#[cfg(test)]
mod tests;

use crate::process::{cargo, run_quietly};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// A longer file has more than one subject.
const MAX_LINES: usize = 500;

/// Absolute paths of one machine mean nothing on another. Spelled in parts: this file is checked too.
const MACHINE_PATHS: [&str; 2] = [concat!("/", "work/"), concat!("/", "root/")];

/// The boundaries of the architecture: edges that must not exist. Tests may cross them.
const FORBIDDEN_EDGES: [(&str, &[&str]); 9] = [
    (
        "tidegate-core",
        &[
            "tokio",
            "tracing",
            "log",
            "tidegate-engine",
            "tidegate-pacer",
            "tidegate-sinks",
            "tidegate-workloads",
            "tidegate-sqlite",
            "tidegate-postgres",
        ],
    ),
    ("tidegate-workloads", &["tidegate-engine", "tidegate-sqlite", "tidegate-postgres"]),
    ("tidegate-sqlite", &["tidegate-engine", "tidegate-postgres"]),
    ("tidegate-postgres", &["tidegate-engine", "tidegate-sqlite"]),
    ("tidegate-engine", &["tidegate-sqlite", "tidegate-postgres", "tidegate-sinks"]),
    ("tidegate-pacer", &["tidegate-core", "tidegate-engine", "tracing", "log"]),
    ("tidegate-records", &["tidegate-core", "tidegate-engine", "tokio", "tracing"]),
    (
        "tidegate-sinks",
        &["tidegate-engine", "tidegate-pacer", "tidegate-sqlite", "tidegate-postgres"],
    ),
    ("tidegate-drill", &["tidegate-core", "tidegate-engine", "tidegate-sinks", "tidegate-pacer"]),
];

/// Fails with every breach of a rule below `root`.
pub fn check(root: &Path) -> Result<()> {
    let mut breaches = forbidden_edges(&metadata()?);
    for path in files(root)? {
        // What is not text has no style.
        let Ok(text) = fs::read_to_string(&path) else { continue };
        breaches.extend(breaches_in(path.strip_prefix(root).unwrap_or(&path), &text));
    }
    if !breaches.is_empty() {
        bail!("the source breaks its rules:\n  {}", breaches.join("\n  "));
    }
    Ok(())
}

fn breaches_in(path: &Path, text: &str) -> Vec<String> {
    let found = [too_long(path, text), without_module_doc(path, text), machine_path(text)];
    found.into_iter().flatten().map(|breach| format!("{}: {breach}", path.display())).collect()
}

fn too_long(path: &Path, text: &str) -> Option<String> {
    let lines = text.lines().count();
    (is_rust(path) && lines > MAX_LINES)
        .then(|| format!("{lines} lines; split what is over {MAX_LINES} by subject"))
}

fn without_module_doc(path: &Path, text: &str) -> Option<String> {
    let is_test = path.components().any(|part| part.as_os_str() == "tests")
        || path.file_name().is_some_and(|name| name == "tests.rs");
    let is_source = path.components().any(|part| part.as_os_str() == "src");
    (is_rust(path) && is_source && !is_test && !text.starts_with("//!"))
        .then(|| "begin with a `//!` that says what the file is for".to_owned())
}

fn machine_path(text: &str) -> Option<String> {
    let (number, line) = text.lines().enumerate().find(|(_, line)| names_machine_path(line))?;
    Some(format!("line {} names a path of one machine: {}", number + 1, line.trim()))
}

fn names_machine_path(line: &str) -> bool {
    // In the middle of a relative path it names no machine.
    let begins_path = |at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '.');
    MACHINE_PATHS.iter().any(|path| line.match_indices(path).any(|(at, _)| begins_path(at)))
}

fn forbidden_edges(metadata: &Value) -> Vec<String> {
    let edges = array(metadata, "packages").flat_map(|package| {
        let shipped = array(package, "dependencies").filter(|edge| edge["kind"] != "dev");
        shipped.filter_map(|edge| Some((package["name"].as_str()?, edge["name"].as_str()?)))
    });
    edges
        .filter(|edge| {
            FORBIDDEN_EDGES.iter().any(|(from, to)| *from == edge.0 && to.contains(&edge.1))
        })
        .map(|(from, to)| format!("{from} depends on {to}, which it must not know"))
        .collect()
}

fn array<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value[key].as_array().into_iter().flatten()
}

fn metadata() -> Result<Value> {
    let text = run_quietly(cargo().args(["metadata", "--no-deps", "--format-version=1"]))?;
    serde_json::from_str(&text).context("could not understand `cargo metadata`")
}

/// All files below `directory` that are kept by people.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = fs::read_dir(directory);
    for entry in entries.with_context(|| format!("could not list {}", directory.display()))? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_file() {
            found.push(entry.path());
        } else if kind.is_dir() && !is_generated(&entry.path()) {
            found.extend(files(&entry.path())?);
        }
    }
    found.sort();
    Ok(found)
}

/// Cargo marks its build directory as a cache, whatever its name.
fn is_generated(directory: &Path) -> bool {
    directory.ends_with(".git") || directory.join("CACHEDIR.TAG").exists()
}

fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}
