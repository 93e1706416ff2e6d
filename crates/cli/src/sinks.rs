//! Which sink: an address with flags, or a name in `tidegate.toml`.

use crate::{
    app::App,
    args::load::{PaceFlags, SinkFlags},
    suggest::{did_you_mean, unknown_field},
};
use anyhow::{Context, Result, anyhow, bail};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use tidegate::{
    Sink, pacer,
    relay::PlannedSink,
    sinks::{Env, Protected, dataverse, file, http, qdrant, stdout},
};
use toml::{Table, Value};

/// A sink that is ready to be used, and how to pace it.
pub struct OpenSink {
    pub sink: Arc<dyn Sink>,
    /// What it is called.
    pub name: String,
    /// Loads of the same file to the same place are the same load: to the same name, or to the same
    /// address with all that goes with it.
    pub place: String,
    /// Records per request.
    pub group: usize,
    pub pacer: pacer::Options,
}

/// What a sink can be, in this binary.
const KINDS: &[&str] = &[
    "http",
    "dataverse",
    "qdrant",
    "file",
    "stdout",
    #[cfg(feature = "kafka")]
    "kafka",
    #[cfg(feature = "nats")]
    "nats",
    #[cfg(feature = "amqp")]
    "amqp",
    #[cfg(feature = "redis")]
    "redis",
    #[cfg(feature = "aws")]
    "sqs",
    #[cfg(feature = "aws")]
    "sns",
];
/// What a sink could be in a binary that was built with a feature, and which.
const FEATURES: [(&str, &str); 6] = [
    ("kafka", "kafka"),
    ("nats", "nats"),
    ("amqp", "amqp"),
    ("redis", "redis"),
    ("sqs", "aws"),
    ("sns", "aws"),
];
/// Sinks for messages: a record has no topic.
const FOR_MESSAGES: [&str; 9] =
    ["qdrant", "file", "stdout", "kafka", "nats", "amqp", "redis", "sqs", "sns"];

/// Sinks whose messages can be laid out for consumers of another library.
const WITH_ENVELOPE: [&str; 5] = ["kafka", "amqp", "redis", "sqs", "sns"];

/// Makes the sink that was asked for. Nothing is sent.
pub fn open(app: &App, to: &str, flags: &SinkFlags, pace: &PaceFlags) -> Result<OpenSink> {
    let (declared, name, place) = match to.contains("://") {
        true => (by_address(to), shown(to), place(to, flags)),
        false => (by_name(app, to)?, to.to_owned(), to.to_owned()),
    };
    let env = |variable: &str| std::env::var(variable).ok();
    let made =
        make(declared, &name, flags, (&env, &app.protected)).with_context(|| about(&name))?;
    let (sink, declared_pacer) = made;
    let most = sink.capabilities().max_group;
    let group = flags.group.map_or(most, |group| group as usize);
    Ok(OpenSink { sink, group, pacer: paced(declared_pacer, pace)?, name, place })
}

/// Makes a sink as declared; what is declared of its pace is left.
fn make(
    mut declared: Table,
    name: &str,
    flags: &SinkFlags,
    world: World<'_>,
) -> Result<(Arc<dyn Sink>, Option<Value>)> {
    let pacer = declared.remove("pacer");
    let kind = take_kind(&mut declared, name)?;
    if FOR_MESSAGES.contains(&kind) {
        bail!("`{kind}` is a sink for messages: use it with `tidegate relay`");
    }
    add_flags(&mut declared, flags, kind)?;
    Ok((of_kind(kind, declared, world)?, pacer))
}

/// The environment, and the files that no sink may write to.
type World<'a> = (&'a Env<'a>, &'a Protected);

/// Makes the sink that is declared under a name, for messages. `envelope` is for those that can have another and
/// do not say which. Nothing is sent.
pub fn planned(
    name: &str,
    declared: &Table,
    protected: &Protected,
    envelope: Option<&str>,
) -> Result<PlannedSink> {
    let env = |variable: &str| std::env::var(variable).ok();
    let make = || {
        let mut declared = declared.clone();
        let pacer = declared.remove("pacer");
        let kind = take_kind(&mut declared, name)?;
        if kind == "http" {
            // Records are what it sends otherwise.
            declared.entry("body").or_insert_with(|| Value::from("message"));
        }
        if let Some(envelope) = envelope.filter(|_| WITH_ENVELOPE.contains(&kind)) {
            declared.entry("envelope").or_insert_with(|| Value::from(envelope));
        }
        let sink = of_kind(kind, declared, (&env, protected))?;
        anyhow::Ok((sink, paced(pacer, &PaceFlags::default())?))
    };
    let (sink, pacer) = make().with_context(|| about(name))?;
    Ok(PlannedSink { name: name.to_owned(), sink, pacer })
}

fn of_kind(kind: &str, declared: Table, (env, protected): World<'_>) -> Result<Arc<dyn Sink>> {
    Ok(match kind {
        "http" => Arc::new(http::Http::new(&decode(declared)?, env)?),
        "dataverse" => Arc::new(dataverse::Dataverse::new(&decode(declared)?, env)?),
        "qdrant" => Arc::new(qdrant::Qdrant::new(&decode(declared)?, env)?),
        "file" => {
            Arc::new(file::FileSink::new(&decode(declared)?)?.keeping_off(protected.clone())?)
        }
        "stdout" => Arc::new(stdout::Stdout::new(&decode(declared)?)?),
        #[cfg(feature = "kafka")]
        "kafka" => Arc::new(tidegate::sinks::kafka::Kafka::new(&decode(declared)?, env)?),
        #[cfg(feature = "nats")]
        "nats" => Arc::new(tidegate::sinks::nats::Nats::new(&decode(declared)?, env)?),
        #[cfg(feature = "amqp")]
        "amqp" => Arc::new(tidegate::sinks::amqp::Amqp::new(&decode(declared)?, env)?),
        #[cfg(feature = "redis")]
        "redis" => Arc::new(tidegate::sinks::redis::Redis::new(&decode(declared)?, env)?),
        #[cfg(feature = "aws")]
        "sqs" => Arc::new(tidegate::sinks::sqs::Sqs::new(&decode(declared)?, env)?),
        #[cfg(feature = "aws")]
        "sns" => Arc::new(tidegate::sinks::sns::Sns::new(&decode(declared)?, env)?),
        _ => bail!("`{kind}` is no kind of sink: {}", KINDS.join(", ")),
    })
}

/// With an address there is no file: what it says about keys is about flags.
pub fn in_flags(to: &str, error: anyhow::Error) -> anyhow::Error {
    const FLAGS: [(&str, &str); 6] = [
        ("`allow`", "--allow"),
        ("`ca_file`", "--ca-file"),
        ("`max_group`", "--group"),
        ("`body`", "--body"),
        ("`url`", "--to"),
        ("`timeout`", "--timeout"),
    ];
    if !to.contains("://") {
        return error;
    }
    let text = format!("{error:#}");
    anyhow!("{}", FLAGS.iter().fold(text, |text, (key, flag)| text.replace(key, flag)))
}

fn about(name: &str) -> String {
    format!("cannot use the sink {name}")
}

fn by_address(url: &str) -> Table {
    let entries = [("kind", "http"), ("url", url)];
    entries.map(|(key, value)| (key.to_owned(), Value::from(value))).into_iter().collect()
}

fn place(url: &str, flags: &SinkFlags) -> String {
    let method = flags.method.as_deref().unwrap_or("POST");
    let mut headers = flags.header.clone();
    headers.sort();
    [[url, method].as_slice(), &headers.iter().map(String::as_str).collect::<Vec<_>>()]
        .concat()
        .join("\n")
}

/// An address may hold a secret behind its question mark, and before an @, although that is refused.
fn shown(url: &str) -> String {
    let place = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = place.split_once("://") else { return place.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    // What is no port may be a password that was cut.
    match host.rsplit_once(':').filter(|_| !host.ends_with(']')) {
        Some((_, port)) if !port.chars().all(|c| c.is_ascii_digit()) => format!("{scheme}://…"),
        _ => format!("{scheme}://{host}{path}"),
    }
}

fn by_name(app: &App, name: &str) -> Result<Table> {
    if let Some(sink) = app.config.sinks.get(name) {
        return Ok(sink.clone());
    }
    let known: Vec<&str> = app.config.sinks.keys().map(String::as_str).collect();
    let hint = match did_you_mean(name, known.iter().copied()) {
        none if none.is_empty() => {
            "; write an address with its scheme (https://…), or add [sinks.NAME] to tidegate.toml"
                .to_owned()
        }
        one => one,
    };
    bail!("there is no sink `{name}`{hint}")
}

fn take_kind(declared: &mut Table, name: &str) -> Result<&'static str> {
    let kind = declared.remove("kind");
    let word = kind.as_ref().and_then(Value::as_str);
    if let Some(known) = KINDS.iter().find(|kind| Some(**kind) == word) {
        return Ok(known);
    }
    if let Some((_, feature)) = FEATURES.iter().find(|(kind, _)| Some(*kind) == word) {
        bail!("this binary was built without the feature `{feature}`, which the sink {name} needs");
    }
    let hint = did_you_mean(word.unwrap_or_default(), KINDS.iter().copied());
    Err(anyhow!("the sink {name} has no `kind` that is known here{hint}: {}", KINDS.join(", ")))
}

/// Flags go before what is declared.
fn add_flags(declared: &mut Table, flags: &SinkFlags, kind: &str) -> Result<()> {
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            declared.insert(key.to_owned(), value);
        }
    };
    let text = |value: &Option<String>| value.clone().map(Value::from);
    set("operation", text(&flags.operation));
    set("method", text(&flags.method));
    set("id_field", text(&flags.id_field));
    set("timeout", flags.timeout.map(|span| Value::from(span.0.as_secs_f64())));
    set("ca_file", flags.ca_file.as_ref().map(|path| path.display().to_string().into()));
    set("bearer", flags.bearer_env.as_deref().map(|variable| source("env", variable)));
    let file = flags.bearer_file.as_ref().map(|path| path.display().to_string());
    set("bearer", file.map(|path| source("file", &path)));
    if let (Some(user), Some(variable)) = (&flags.user, &flags.password_env) {
        let basic = [("user", Value::from(user.clone())), ("password", source("env", variable))];
        set("basic", Some(table(basic)));
    }
    if !flags.allow.is_empty() {
        set("allow", Some(flags.allow.clone().into()));
    }
    let group = flags.group.map(|group| group as i64);
    match (kind, &flags.body) {
        ("http", Some(body)) => set("body", Some(body.clone().into())),
        // More than one record in a request needs a form that can hold them.
        ("http", None) if group > Some(1) && !declared.contains_key("body") => {
            declared.insert("body".to_owned(), "array".into());
        }
        (_, Some(_)) => bail!("--body is for http sinks"),
        _ => {}
    }
    if let Some(group) = group.filter(|group| *group > 1 || kind != "http") {
        declared.insert("max_group".to_owned(), group.into());
    }
    add_headers(declared, &flags.header)
}

fn add_headers(declared: &mut Table, headers: &[String]) -> Result<()> {
    if headers.is_empty() {
        return Ok(());
    }
    let entry = declared.entry("headers").or_insert_with(|| Value::Table(Table::new()));
    let all = entry.as_table_mut().ok_or_else(|| anyhow!("`headers` must be a table"))?;
    for header in headers {
        let (name, value) = header
            .split_once(':')
            .ok_or_else(|| anyhow!("`{header}` is no header: write --header 'Name: value'"))?;
        all.insert(name.trim().to_owned(), value.trim().into());
    }
    Ok(())
}

fn source(kind: &str, place: &str) -> Value {
    table([(kind, place.into())])
}

fn table<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::Table(entries.map(|(key, value)| (key.to_owned(), value)).into_iter().collect())
}

fn decode<T: DeserializeOwned>(declared: Table) -> Result<T> {
    serde_path_to_error::deserialize(Value::Table(declared)).map_err(|error| {
        match error.path().to_string() {
            root if root == "." => anyhow!("{}", unknown_field(error.inner().message())),
            path => anyhow!("`{path}`: {}", unknown_field(error.inner().message())),
        }
    })
}

fn paced(declared: Option<Value>, flags: &PaceFlags) -> Result<pacer::Options> {
    let declared = declared.unwrap_or_else(|| Value::Table(Table::new()));
    let Value::Table(declared) = declared else { bail!("`pacer` must be a table") };
    let mut options: pacer::Options = decode(declared).context("cannot use `pacer`")?;
    options.max = flags.max.unwrap_or(options.max);
    options.policy = flags.policy.unwrap_or(options.policy);
    options.rate = flags.rate.or(options.rate);
    options.check()?;
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_secrets() {
        for (url, expected) in [
            ("https://host/a?key=secret", "https://host/a"),
            ("https://user:secret@host/a", "https://host/a"),
            ("https://user:sec/ret@host/a", "https://…"),
            ("https://user:sec?ret@host/a", "https://…"),
            ("http://[::1]:80/@me", "http://[::1]:80/@me"),
        ] {
            assert_eq!(shown(url), expected);
        }
    }

    /// An envelope that does not exist tells who was asked for it.
    #[cfg(all(feature = "kafka", feature = "amqp", feature = "redis", feature = "aws"))]
    #[test]
    fn the_envelope_of_an_outbox_is_for_sinks_that_can_have_one() {
        let refused = |declared: &str, envelope| {
            let declared: Table = declared.parse().unwrap();
            let made = planned("it", &declared, &Protected::default(), Some(envelope));
            made.err().map(|error| format!("{error:#}"))
        };
        for sink in [
            "kind = 'kafka'\nbrokers = ['h:1']",
            "kind = 'amqp'\nurl = 'amqps://h'",
            "kind = 'redis'\nurl = 'rediss://h'",
            "kind = 'sqs'\nqueue = 'https://sqs.eu-west-1.amazonaws.com/1/q'",
            "kind = 'sns'\ntopic = 'arn:aws:sns:eu-west-1:1:t'",
        ] {
            assert!(refused(sink, "odd").unwrap().contains("`envelope`"), "{sink}");
            assert_eq!(refused(sink, "brighter"), None);
            assert_eq!(refused(&format!("{sink}\nenvelope = 'tidegate'"), "odd"), None);
        }
        assert_eq!(refused("kind = 'stdout'", "odd"), None);
    }

    /// Every sink that the documentation declares can be used as it stands there.
    #[test]
    fn sinks_in_the_documentation_can_be_used() {
        let text = include_str!("../../../docs/sinks.md");
        let blocks = text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
        let env = |_: &str| Some("secret".to_owned());
        let mut names = Vec::new();
        for block in blocks {
            let config: Table = block.parse().unwrap();
            for (name, declared) in config["sinks"].as_table().unwrap() {
                let declared = declared.as_table().unwrap().clone();
                let world = (&env as &Env<'_>, &Protected::default());
                let (_, pacer) = make(declared, name, &SinkFlags::default(), world).unwrap();
                paced(pacer, &PaceFlags::default()).unwrap();
                names.push(name.clone());
            }
        }
        assert_eq!(names, ["people", "orders", "crm", "ledger"]);
    }
}
