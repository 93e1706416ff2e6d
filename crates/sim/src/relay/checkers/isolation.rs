//! A sink in trouble holds up no other: where relays and store are calm, what a healthy sink takes at once
//! arrives at once, unless its key waits.

use super::ensure;
use crate::relay::{End, Event, Hazard, scenario::Nature, view::View};
use std::{collections::BTreeSet, time::Duration};

/// How long a message may take while nothing is wrong with it. A sink is read apart from the others after a
/// second; the rest is groups before it, each up to a third of a second.
const SOON: Duration = Duration::from_secs(8);

pub fn check(view: &View<'_>, _: &End) -> Result<(), String> {
    let scenario = view.scenario;
    let stormy = [
        Hazard::Crash,
        Hazard::Freeze,
        Hazard::Restart,
        Hazard::Store,
        Hazard::SlowStore,
        Hazard::Outage,
        Hazard::Reroute,
    ];
    let [life] = &scenario.lives[..] else { return Ok(()) };
    if stormy.into_iter().any(|hazard| scenario.hazards.has(hazard)) {
        return Ok(());
    }
    let waiting: BTreeSet<&str> = scenario
        .messages
        .iter()
        .filter(|message| message.nature != Nature::Good)
        .filter_map(|message| message.key.as_deref())
        .collect();
    for entry in view.history {
        let Event::Published { id, message } = entry.event else { continue };
        let plan = &scenario.messages[message];
        let Some(sink) = scenario.steady(plan.topic) else { continue };
        let server = &scenario.servers[sink];
        let own = plan.nature != Nature::Good
            || plan.key.as_deref().is_some_and(|key| waiting.contains(key));
        let slow = server.max_group == 1 && server.takes > Duration::from_millis(50);
        let ill = !server.spells.is_empty() || server.unknown > 0.0 || slow || shut(view, sink);
        let coalesces = scenario.topics[plan.topic].policy.coalesce;
        if own || ill || coalesces {
            continue;
        }
        let from = entry.at.max(life.starts_at) + plan.delay.unwrap_or_default();
        let first = view.messages.get(&id).and_then(|known| known.accepted.first());
        let took = first.map(|first| view.history[first.at].at.saturating_sub(from));
        ensure(took.is_some_and(|took| took <= SOON), || {
            format!("{id} for sink {sink}, which is well, took {took:?}")
        })?;
    }
    Ok(())
}

/// Whether items make the sink look absent, or too busy: then everybody waits.
fn shut(view: &View<'_>, sink: usize) -> bool {
    view.scenario.messages.iter().any(|message| {
        let shuts = matches!(message.nature, Nature::Away(..) | Nature::Busy(_));
        shuts && view.scenario.steady(message.topic) == Some(sink)
    })
}
