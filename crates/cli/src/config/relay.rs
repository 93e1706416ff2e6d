//! What a relay is told by `tidegate.toml`: sinks, routes, and what holds for topics.

use super::Config;
use crate::{
    sinks,
    suggest::{did_you_mean, unknown_field},
    units::Span,
};
use anyhow::{Result, anyhow, bail};
use serde::Deserialize;
use tidegate::{
    RetryPolicy,
    adopted::{Mapping, Preset},
    outbox::{OnDead, Pattern, Route},
    relay::{Plan, PlannedSink, TopicPolicy},
    sinks::Protected,
};
use toml::Table;

/// `[[routes]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteConfig {
    /// A topic; `*` stands for any characters.
    pub topic: String,
    /// The name of a sink.
    pub sink: String,
}

/// `[[topics]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopicConfig {
    /// A topic; `*` stands for any characters.
    pub topic: String,
    #[serde(default)]
    pub on_dead: OnDead,
    #[serde(default)]
    pub order: Order,
    #[serde(default)]
    pub coalesce: bool,
    pub max_attempts: Option<u32>,
    pub backoff: Option<Span>,
    pub max_backoff: Option<Span>,
}

/// What a key means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Messages with the same key are delivered in order.
    #[default]
    Key,
    /// Nothing for the order.
    None,
}

/// `[outbox]`
#[derive(Debug, Default, Deserialize)]
#[serde(try_from = "Table")]
pub struct OutboxConfig {
    /// How long messages are kept that were sent.
    pub keep: Option<Span>,
    /// How the rows of a table that is there already are messages.
    pub table: Option<Mapping>,
}

impl TryFrom<Table> for OutboxConfig {
    type Error = String;

    /// Whatever is no setting of the outbox itself is about a table.
    fn try_from(mut table: Table) -> Result<Self, String> {
        let keep = table.remove("keep").map(Span::deserialize).transpose();
        let keep = keep.map_err(|error| error.message().to_owned())?;
        let min_age = table.remove("min_age").map(Span::deserialize).transpose();
        let min_age = min_age.map_err(|error| error.message().to_owned())?.map(|span| span.0);
        let is_mapped = min_age.is_some() || !table.is_empty();
        let known = is_mapped.then(|| Mapping::deserialize(table)).transpose();
        let all = |message: &str| message.replacen("one of ", "one of `keep`, `min_age`, ", 1);
        let known = known.map_err(|error| unknown_field(&all(error.message())))?;
        Ok(Self { keep, table: known.map(|mapping| Mapping { min_age, ..mapping }) })
    }
}

impl TopicConfig {
    fn policy(&self) -> Result<TopicPolicy> {
        let default = RetryPolicy::default();
        let policy = TopicPolicy {
            retry: RetryPolicy {
                max_attempts: self.max_attempts.unwrap_or(default.max_attempts),
                base: self.backoff.map_or(default.base, |span| span.0),
                cap: self.max_backoff.map_or(default.cap, |span| span.0),
            },
            on_dead: self.on_dead,
            unordered: self.order == Order::None,
            coalesce: self.coalesce,
        };
        if policy.retry.max_attempts == 0 {
            bail!("`max_attempts` of topic {} must be above 0", self.topic);
        }
        if policy.coalesce && policy.unordered {
            bail!(
                "topic {} cannot coalesce without order: its last write must be known",
                self.topic
            );
        }
        Ok(policy)
    }
}

/// Settings that all sinks of a relay share.
#[derive(Clone, Copy)]
pub struct Making<'a> {
    /// Files that no sink may write to.
    pub protected: &'a Protected,
    /// A preset from a flag, which overrides the one in the config file.
    pub preset: Option<Preset>,
    /// The address of the store.
    pub store: &'a str,
}

impl Making<'_> {
    /// The envelope of sinks that do not say which: what the outbox holds is for consumers of the same library.
    fn envelope(self, config: &Config) -> Option<&'static str> {
        let declared = config.outbox.table.as_ref().and_then(|table| table.preset);
        let preset = self.preset.or(declared);
        let is_brighter = preset == Some(Preset::Brighter) || tidegate::is_dynamodb(self.store);
        is_brighter.then_some("brighter")
    }

    fn sink(self, config: &Config, name: &str, declared: &Table) -> Result<PlannedSink> {
        sinks::planned(name, declared, self.protected, self.envelope(config))
    }
}

/// All sinks that are declared.
pub fn sinks(config: &Config, making: Making<'_>) -> Result<Vec<PlannedSink>> {
    let declared = config.sinks.iter();
    declared.map(|(name, declared)| making.sink(config, name, declared)).collect()
}

/// What holds for topics.
pub fn policies(config: &Config) -> Result<Vec<(Pattern, TopicPolicy)>> {
    config.topics.iter().map(|it| Ok((Pattern(it.topic.clone()), it.policy()?))).collect()
}

/// Where messages go. With `to`, all go to that sink.
pub fn plan(config: &Config, to: Option<&str>, making: Making<'_>) -> Result<Plan> {
    let policies = policies(config)?;
    let routes: Vec<Route> = match to {
        Some(sink) => vec![route("*", sink)],
        None => config.routes.iter().map(|it| route(&it.topic, &it.sink)).collect(),
    };
    if routes.is_empty() {
        bail!(
            "there are no routes: add [[routes]] with `topic` and `sink` to tidegate.toml, or name a \
             sink with --to"
        );
    }
    let mut sinks: Vec<PlannedSink> = Vec::new();
    for route in &routes {
        if !sinks.iter().any(|sink| sink.name == route.sink) {
            let declared = declared(config, &route.sink)?;
            sinks.push(making.sink(config, &route.sink, &declared)?);
        }
    }
    Ok(Plan { sinks, routes, policies })
}

fn route(topics: &str, sink: &str) -> Route {
    Route { topics: Pattern(topics.to_owned()), sink: sink.to_owned() }
}

fn declared(config: &Config, name: &str) -> Result<Table> {
    match config.sinks.get(name) {
        Some(declared) => Ok(declared.clone()),
        // It needs no declaration.
        None if name == "stdout" => {
            Ok([("kind".to_owned(), "stdout".into())].into_iter().collect())
        }
        None => {
            let known = config.sinks.keys().map(String::as_str).chain(["stdout"]);
            let hint = did_you_mean(name, known);
            Err(anyhow!("there is no sink `{name}`{hint}; declare it as [sinks.{name}]"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(text: &str) -> Result<Plan> {
        let making = Making { protected: &Protected::default(), preset: None, store: "memory:" };
        plan(&super::super::parse(text)?, None, making)
    }

    #[test]
    fn routes_and_topics_make_a_plan() {
        let plan = planned(
            "[sinks.a]\nkind = 'stdout'\n[sinks.b]\nkind = 'file'\npath = 'x.ndjson'\n\
             [[routes]]\ntopic = 'orders.*'\nsink = 'b'\n[[routes]]\ntopic = '*'\nsink = 'a'\n\
             [[topics]]\ntopic = 'orders.*'\non_dead = 'park'\nmax_attempts = 3\nbackoff = '1s'\n\
             [[topics]]\ntopic = 'logs'\norder = 'none'",
        )
        .unwrap();
        assert_eq!(plan.sink_of("orders.new"), plan.sink_named("b"));
        assert_eq!(plan.policy("orders.new").on_dead, OnDead::Park);
        assert!(plan.policy("logs").unordered && !plan.policy("other").unordered);
    }

    /// Every block of settings on these pages can be read as it stands there.
    #[test]
    fn settings_in_the_documentation_can_be_read() {
        for page in [
            include_str!("../../../../docs/outbox.md"),
            include_str!("../../../../docs/existing-tables.md"),
            include_str!("../../../../docs/dynamodb.md"),
        ] {
            let blocks =
                page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
            let read = blocks.map(|block| super::super::parse(block).map(|_| ()));
            assert!(!read.collect::<Result<Vec<()>>>().unwrap().is_empty());
        }
    }

    #[test]
    fn sinks_of_a_brighter_outbox_have_its_envelope_unless_they_say_otherwise() {
        let of_store = |store: &str, outbox: &str, preset| {
            let config = super::super::parse(outbox).unwrap();
            Making { protected: &Protected::default(), preset, store }.envelope(&config)
        };
        let envelope = |outbox: &str, preset| of_store("postgres://db/tide", outbox, preset);
        assert_eq!(of_store("dynamodb://orders", "", None), Some("brighter"));
        assert_eq!(envelope("[outbox]\npreset = 'brighter'", None), Some("brighter"));
        assert_eq!(envelope("", Some(Preset::Brighter)), Some("brighter"));
        assert_eq!(envelope("[outbox]\npreset = 'brighter'", Some(Preset::Debezium)), None);
        assert_eq!(envelope("", None), None);
    }

    #[test]
    fn a_minimum_age_is_part_of_the_mapping() {
        let outbox = |text: &str| super::super::parse(text).unwrap().outbox;
        let table = outbox("[outbox]\npreset = 'brighter'\nmin_age = '5s'").table.unwrap();
        assert_eq!(table.min_age, Some(std::time::Duration::from_secs(5)));
        assert_eq!(outbox("[outbox]\nmin_age = '5s'").table.unwrap().preset, None);
        let error = super::super::parse("[outbox]\nmin_age = 'soon'").unwrap_err();
        assert!(format!("{error:#}").contains("`soon` is no time"), "{error:#}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let refused = |text: &str| planned(text).map(|_| ()).unwrap_err().to_string();
        assert!(refused("").contains("there are no routes"));
        let text = refused("[sinks.crm]\nkind = 'stdout'\n[[routes]]\ntopic = '*'\nsink = 'crn'");
        assert!(text.contains("did you mean `crm`?"), "{text}");
        let text = refused("[outbox]\nkep = '1d'");
        assert!(text.contains("did you mean `keep`?"), "{text}");
        let text = refused("[outbox]\npreset = 'debezium'\npaylod = 'x'");
        assert!(text.contains("did you mean `payload`?"), "{text}");
        let text = "[[topics]]\ntopic = 'a'\ncoalesce = true\norder = 'none'";
        assert!(refused(text).contains("cannot coalesce"));
    }
}
