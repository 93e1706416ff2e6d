//! Every message is taken in by a sink that its topic goes to, or the store still says what it waits for,
//! or somebody dropped it, or a later one stands for it.

use super::ensure;
use crate::relay::{
    End,
    history::position,
    view::{Known, View},
};
use std::collections::BTreeSet;
use tidegate_core::Position;

pub fn check(view: &View<'_>, end: &End) -> Result<(), String> {
    let stuck: BTreeSet<Position> = end.stuck.iter().map(|stuck| position(&stuck.id)).collect();
    for (id, known) in &view.messages {
        for accepted in &known.accepted {
            let topic = view.topic(known);
            let routings = view.scenario.routings.iter();
            let mut sinks = routings.filter_map(|it| it.sink_of(topic)).map(|(_, place)| *place);
            ensure(sinks.any(|sink| sink == accepted.sink), || {
                format!("{id} on {topic} went to sink {}", accepted.sink)
            })?;
        }
        let there = !known.accepted.is_empty() || known.dropped.is_some() || stuck.contains(id);
        ensure(there || is_covered(view, *id, known), || {
            let delay = view.scenario.messages[known.message].delay;
            format!(
                "{id} on {} is gone: delay {delay:?}, read {:?}, set aside {:?}",
                view.topic(known),
                known.claimed.iter().map(|(at, life)| (view.time(*at), life)).collect::<Vec<_>>(),
                known.aside.iter().map(|(at, it)| (view.time(*at), it)).collect::<Vec<_>>(),
            )
        })?;
    }
    Ok(())
}

/// Whether a later message of the same key and topic was taken in, on a topic that coalesces.
pub fn is_covered(view: &View<'_>, id: Position, known: &Known) -> bool {
    let of = |known: &Known| {
        let plan = &view.scenario.messages[known.message];
        (plan.topic, plan.key.clone())
    };
    let own = of(known);
    let mut later = view.messages.range(Position(id.0 + 1)..);
    view.scenario.policy(known.message).coalesce
        && own.1.is_some()
        && later.any(|(_, later)| !later.accepted.is_empty() && of(later) == own)
}
