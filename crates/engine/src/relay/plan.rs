//! What a relay is told: where messages go, and what happens to those that fail.

use std::sync::Arc;
use tidegate_core::{
    RetryPolicy, Sink,
    outbox::{Choice, OnDead, Pattern, Route, Topics},
};
use tidegate_pacer as pacer;

/// Where messages go, and what happens to those that fail.
#[derive(Clone, Default)]
pub struct Plan {
    /// Each has a name of its own.
    pub sinks: Vec<PlannedSink>,
    /// The first that takes a topic decides.
    pub routes: Vec<Route>,
    /// The first that takes a topic decides; the default for all others.
    pub policies: Vec<(Pattern, TopicPolicy)>,
}

/// A sink of a plan.
#[derive(Clone)]
pub struct PlannedSink {
    /// What routes call it.
    pub name: String,
    /// The way to it.
    pub sink: Arc<dyn Sink>,
    /// How to pace it.
    pub pacer: pacer::Options,
}

/// One of the ways in which messages are read. Every topic is in exactly one.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub name: String,
    pub topics: Topics,
}

/// What holds for the messages on a topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopicPolicy {
    /// When a message is tried again.
    pub retry: RetryPolicy,
    /// What happens to the rest of a key when a message is given up.
    pub on_dead: OnDead,
    /// Keys mean no order.
    pub unordered: bool,
    /// Of what waits with the same key, only the last is sent: for sinks that hold state.
    pub coalesce: bool,
}

impl Plan {
    /// What holds for a topic.
    pub fn policy(&self, topic: &str) -> TopicPolicy {
        let found = self.policies.iter().find(|(pattern, _)| pattern.matches(topic));
        found.map(|(_, policy)| *policy).unwrap_or_default()
    }

    /// The place of the sink that a topic goes to.
    pub fn sink_of(&self, topic: &str) -> Option<usize> {
        let route = Route::find(&self.routes, topic)?;
        self.sink_named(&route.sink)
    }

    /// The place of a sink.
    pub fn sink_named(&self, name: &str) -> Option<usize> {
        self.sinks.iter().position(|sink| sink.name == name)
    }

    /// The lines by which messages are read: one for each sink, and one for what has no route.
    pub(super) fn lines(&self) -> Vec<Line> {
        let line = |sink: &PlannedSink| Line {
            name: sink.name.clone(),
            topics: Topics::of_sink(&self.routes, &sink.name),
        };
        let unless = self.routes.iter().map(|route| route.topics.clone()).collect();
        let rest = Choice { takes: Pattern("*".to_owned()), unless };
        let rest = Line { name: "(no route)".to_owned(), topics: Topics(vec![rest]) };
        self.sinks.iter().map(line).chain([rest]).collect()
    }
}
