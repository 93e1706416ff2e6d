//! Snapshots from files and from stdin: TOML or JSON.

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Map, Number, Value};
use std::{
    fs,
    io::{self, Read},
    path::Path,
};
use tidegate::AnyWorkload;

/// Reads a snapshot; `-` is stdin.
pub fn read(path: &Path) -> Result<Value> {
    let name = if path == Path::new("-") { "stdin".to_owned() } else { path.display().to_string() };
    let text = text(path).with_context(|| format!("cannot read the snapshot `{name}`"))?;
    let is_json = match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => true,
        Some("toml") => false,
        // A TOML file cannot begin with a brace.
        _ => text.trim_start().starts_with('{'),
    };
    let value = if is_json { parse_json(&text) } else { parse_toml(&text) };
    value.with_context(|| format!("the snapshot `{name}` is malformed"))
}

/// The snapshot that a workload suggests.
pub fn example(workload: &dyn AnyWorkload) -> Result<Value> {
    let name = workload.name();
    parse_toml(workload.example()).with_context(|| format!("the example of `{name}` is malformed"))
}

fn text(path: &Path) -> io::Result<String> {
    if path != Path::new("-") {
        return fs::read_to_string(path);
    }
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    Ok(text)
}

fn parse_json(text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|error| anyhow!("{error}"))
}

fn parse_toml(text: &str) -> Result<Value> {
    let table: toml::Table = toml::from_str(text).map_err(|error| toml_problem(text, &error))?;
    from_toml(toml::Value::Table(table))
}

/// What is wrong and where, in one line.
pub fn toml_problem(text: &str, error: &toml::de::Error) -> anyhow::Error {
    let Some(span) = error.span() else { return anyhow!("{}", error.message()) };
    let before = text.get(..span.start).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    anyhow!("{} at line {line} column {column}", error.message())
}

fn from_toml(value: toml::Value) -> Result<Value> {
    Ok(match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Boolean(truth) => truth.into(),
        // JSON has no times; their text is the same in both.
        toml::Value::Datetime(time) => Value::String(time.to_string()),
        toml::Value::Float(number) => match Number::from_f64(number) {
            Some(number) => Value::Number(number),
            None => bail!("{number} is no number that a snapshot can hold"),
        },
        toml::Value::Array(values) => {
            Value::Array(values.into_iter().map(from_toml).collect::<Result<_>>()?)
        }
        toml::Value::Table(table) => {
            let entries = table.into_iter().map(|(key, value)| Ok((key, from_toml(value)?)));
            Value::Object(entries.collect::<Result<Map<_, _>>>()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn toml_and_json_mean_the_same() {
        let toml = "ms = 1.5\nteams = [{ name = 'Red', size = 3 }]\nday = 2026-01-02\n";
        let json = r#"{"ms": 1.5, "teams": [{"name": "Red", "size": 3}], "day": "2026-01-02"}"#;
        assert_eq!(parse_toml(toml).unwrap(), parse_json(json).unwrap());
        assert_eq!(parse_toml("").unwrap(), json!({}));
    }

    #[test]
    fn a_problem_has_its_place() {
        let error = parse_toml("ms = 1\nms = 2\n").unwrap_err().to_string();
        assert!(error.contains("duplicate key") && error.contains("line 2 column 1"), "{error}");
        let error = parse_json("{\"ms\": }").unwrap_err().to_string();
        assert!(error.contains("line 1 column 8"), "{error}");
        assert!(parse_toml("ms = inf").is_err());
    }
}
