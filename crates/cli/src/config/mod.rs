//! `tidegate.toml`: what flags and the environment leave open.

pub mod relay;

use crate::{
    snapshot::toml_problem,
    suggest::{did_you_mean, unknown_field},
    units::{LeaseTime, Span, Timeout},
};
use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};
use tidegate::Keep;

/// Read from the current directory unless another file is named.
const FILE: &str = "tidegate.toml";

/// Most threads of a worker: beyond it a typo is likelier than a wish.
pub const MAX_THREADS: u32 = 4096;

/// The settings of a file, each as its flag has it.
#[derive(Debug, Default, Deserialize)]
pub struct Config {
    pub store: Option<String>,
    pub keep: Option<Keep>,
    pub timeout: Option<Timeout>,
    pub max_attempts: Option<u32>,
    pub threads: Option<u32>,
    pub range_length: Option<u64>,
    pub flush_runs: Option<u64>,
    pub flush_after: Option<Span>,
    pub lease: Option<LeaseTime>,
    pub poll: Option<Span>,
    pub grace: Option<Span>,
    pub stalled_after: Option<Span>,
    /// By name, each as its kind has it.
    #[serde(default)]
    pub sinks: BTreeMap<String, toml::Table>,
    /// Where messages go: the first that takes a topic decides.
    #[serde(default)]
    pub routes: Vec<relay::RouteConfig>,
    /// What holds for topics: the first that matches decides.
    #[serde(default)]
    pub topics: Vec<relay::TopicConfig>,
    #[serde(default)]
    pub outbox: relay::OutboxConfig,
}

const KEYS: [&str; 16] = [
    "store",
    "keep",
    "timeout",
    "max_attempts",
    "threads",
    "range_length",
    "flush_runs",
    "flush_after",
    "lease",
    "poll",
    "grace",
    "stalled_after",
    "sinks",
    "routes",
    "topics",
    "outbox",
];

impl Config {
    /// The files that sinks read: certificates and secrets.
    pub fn files(&self) -> Vec<PathBuf> {
        self.sinks.values().flat_map(files_of).collect()
    }
}

fn files_of(table: &toml::Table) -> Vec<PathBuf> {
    let of = |(key, value): (&String, &toml::Value)| match value {
        toml::Value::String(path) if key == "file" || key.ends_with("_file") => {
            vec![PathBuf::from(path)]
        }
        toml::Value::Table(table) => files_of(table),
        toml::Value::Array(values) => {
            values.iter().filter_map(toml::Value::as_table).flat_map(files_of).collect()
        }
        _ => Vec::new(),
    };
    table.iter().flat_map(of).collect()
}

/// The file that the settings are read from.
pub fn path(named: Option<&Path>) -> &Path {
    named.unwrap_or(Path::new(FILE))
}

/// Reads the file named, or the one in the current directory if there is one.
pub fn read(named: Option<&Path>) -> Result<Config> {
    let path = path(named);
    match fs::read_to_string(path) {
        Ok(text) => parse(&text).with_context(|| format!("cannot use `{}`", path.display())),
        Err(error) if named.is_none() && error.kind() == ErrorKind::NotFound => {
            Ok(Config::default())
        }
        Err(error) => Err(error).with_context(|| format!("cannot read `{}`", path.display())),
    }
}

fn parse(text: &str) -> Result<Config> {
    let table: toml::Table = toml::from_str(text).map_err(|error| toml_problem(text, &error))?;
    if let Some(key) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
        bail!(match did_you_mean(key, KEYS) {
            none if none.is_empty() => format!("`{key}` is no setting ({})", KEYS.join(", ")),
            one => format!("`{key}` is no setting{one}"),
        });
    }
    let config: Config =
        serde_path_to_error::deserialize(toml::Value::Table(table)).map_err(|error| {
            anyhow!("`{}`: {}", error.path(), unknown_field(error.inner().message()))
        })?;
    let counts = [config.threads.map(u64::from), config.range_length, config.flush_runs];
    if counts.contains(&Some(0)) {
        bail!("threads, range_length and flush_runs must be above 0");
    }
    if config.threads > Some(MAX_THREADS) {
        bail!("threads must be at most {MAX_THREADS}");
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str, expect: &str) {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
    }

    #[test]
    fn every_key_is_read() {
        let config = parse(
            "store = 'memory:'\nkeep = 'sample:5'\ntimeout = 'none'\nmax_attempts = 2\n\
             threads = 3\nrange_length = 1_000\nflush_runs = 7\nflush_after = '10ms'\n\
             lease = '5s'\npoll = '1s'\ngrace = '1m'\nstalled_after = '2h'\n[sinks.crm]\nkind = 'http'\n\
             [[routes]]\ntopic = 'a'\nsink = 'crm'\n[[topics]]\ntopic = 'a'\n[outbox]\nkeep = '7d'",
        )
        .unwrap();
        let printed = format!("{config:?}");
        let is_read = |key: &str| {
            [": Some(", ": {", ": [", ": OutboxConfig"]
                .iter()
                .any(|read| printed.contains(&format!("{key}{read}")))
        };
        assert!(KEYS.iter().all(|key| is_read(key)), "{printed}");
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        refused("thread = 2", "`thread` is no setting; did you mean `threads`?");
        refused("threads = 'two'", "`threads`: invalid type: string \"two\", expected u32");
        refused("lease = '30'", "`lease`: `30` is no time");
        refused("lease = '999ms'", "`lease`: a lease of 999ms is lost before it can be renewed");
        refused("threads = 0", "above 0");
        refused("threads = 5000", "at most 4096");
        refused("xyz = 1", "`xyz` is no setting (store, keep, timeout, ");
        refused("threads", "line 1 column 8");
        refused(
            "[[routes]]\ntopic = 'a'\nsinc = 'b'",
            "`sinc` is no key here; did you mean `sink`?",
        );
        refused("[[topics]]\ntopic = 'a'\non_dead = 'skipp'", "unknown variant `skipp`");
    }
}
