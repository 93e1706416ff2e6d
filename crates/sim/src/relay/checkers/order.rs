//! A sink sees the messages of a key in their order. When one is sent again, so is all that followed.
//!
//! One excuse: a sink cannot be fenced. A request that was on its way when its lane was lost, or in the
//! hands of a relay that was frozen until then, arrives late.

use super::{ensure, nothing_vanishes::is_covered};
use crate::relay::End;
use crate::relay::view::{Acceptance, Known, Place, Right, View};
use std::collections::BTreeMap;
use tidegate_core::{
    Position,
    outbox::{Aside, OnDead},
};

/// The messages of one key for one sink, in order.
type Line<'a> = Vec<(Position, &'a Known)>;

pub fn check(view: &View<'_>, _: &End) -> Result<(), String> {
    let mut lines: BTreeMap<(&str, usize), Line<'_>> = BTreeMap::new();
    for (id, known) in &view.messages {
        let plan = &view.scenario.messages[known.message];
        let ordered = !view.scenario.policy(known.message).unordered;
        let (Some(key), Some(sink)) = (&plan.key, view.scenario.steady(plan.topic)) else {
            continue;
        };
        if ordered {
            lines.entry((key, sink)).or_default().push((*id, known));
        }
    }
    lines.iter().try_for_each(|((key, sink), line)| {
        check_line(view, line).map_err(|broken| format!("key {key} at sink {sink}: {broken}"))
    })
}

fn check_line(view: &View<'_>, line: &Line<'_>) -> Result<(), String> {
    for (at, (id, known)) in line.iter().enumerate() {
        let Some(first) = known.accepted.first() else { continue };
        for (earlier, before) in &line[..at] {
            let seen = before.accepted.first().is_some_and(|it| it.is_before(first));
            let covered = line.iter().any(|(later, it)| {
                let by = it.accepted.first().is_some_and(|by| !first.is_before(by));
                later > earlier && by && stands_for(view, it, before)
            });
            ensure(seen || covered || is_excused(view, *earlier, before, first.at), || {
                let (when, ours) = (when(view, before), when(view, known));
                format!("{id} {ours} was taken in before {earlier} {when}")
            })?;
        }
        let covered = |it: &&Acceptance| {
            let covers = |later: &Known| later.accepted.first().is_some_and(|by| by.is_before(it));
            line[at + 1..].iter().any(|(_, later)| stands_for(view, later, known) && covers(later))
        };
        let (first, rest) = known.accepted.split_at(1);
        for again in first.iter().filter(covered).chain(rest) {
            check_again(view, (*id, known), again, &line[at + 1..])?;
        }
    }
    Ok(())
}

/// Whether a message of the same key stands for an earlier one.
fn stands_for(view: &View<'_>, later: &Known, earlier: &Known) -> bool {
    let topic = |known: &Known| view.scenario.messages[known.message].topic;
    view.scenario.policy(earlier.message).coalesce && topic(later) == topic(earlier)
}

/// Whether a message need not have been taken in by then.
fn is_excused(view: &View<'_>, id: Position, known: &Known, by: Place) -> bool {
    let delayed = view.scenario.messages[known.message].delay.is_some();
    let dropped = known.dropped.is_some_and(|at| at < by);
    let strays = |it: &Acceptance| view.right(known, it) >= Right::InFlight;
    let covered = known.accepted.iter().all(strays) && is_covered(view, id, known);
    delayed || dropped || covered || skips(view, id, known, by)
}

/// Whether a message was given up, for a reason that was known by then, and its key goes on. If the relay
/// that knew crashed before it could say so, the message must have died again, and not been taken in.
fn skips(view: &View<'_>, id: Position, known: &Known, by: Place) -> bool {
    let skips = |aside: &Aside| matches!(aside, Aside::Dead { then: OnDead::Skip, .. });
    let requests = view.requests.values().filter(|request| request.ids.contains(&id));
    let answers: Vec<Place> =
        requests.filter_map(|request| request.answer.as_ref()).map(|(at, _)| *at).collect();
    let mut deaths = known.aside.iter().filter(|(_, aside)| skips(aside));
    deaths.any(|(at, _)| {
        let before = answers.iter().filter(|answer| *answer < at);
        let known_by = match known.accepted.is_empty() {
            true => before.min(),
            false => before.max(),
        };
        known_by.is_some_and(|answer| *answer < by)
    })
}

/// Whether a message was given up, and its key waits for somebody who never came.
fn holds_for_ever(known: &Known) -> bool {
    let Some((died, Aside::Dead { then: OnDead::Block | OnDead::Park, .. })) = known.aside.last()
    else {
        return false;
    };
    known.dropped.is_none() && !known.retried.iter().any(|at| at > died)
}

/// A message is taken in again: what had been taken in behind it follows again.
fn check_again(
    view: &View<'_>,
    (id, known): (Position, &Known),
    again: &Acceptance,
    later: &[(Position, &Known)],
) -> Result<(), String> {
    let right = view.right(known, again);
    let delayed = view.scenario.messages[known.message].delay.is_some();
    // What was given up went behind those that followed it, when somebody tried it once more.
    let given_up = |aside: &Aside| matches!(aside, Aside::Dead { then: OnDead::Skip, .. });
    let skipped = known.aside.iter().any(|(_, aside)| given_up(aside));
    if delayed || skipped || matches!(right, Right::InFlight | Right::Frozen) {
        return Ok(());
    }
    for (at, (other, newer)) in later.iter().enumerate() {
        let before = newer.accepted.iter().any(|it| it.is_before(again));
        let follows = |newer: &Known| newer.accepted.iter().any(|it| again.is_before(it));
        let given_up = newer.aside.iter().any(|(_, aside)| matches!(aside, Aside::Dead { .. }));
        let topic = view.topic(newer);
        let covered = view.scenario.policy(newer.message).coalesce
            && later[at..].iter().any(|(_, it)| follows(it) && view.topic(it) == topic);
        let held = later[..at].iter().any(|(_, it)| holds_for_ever(it));
        ensure(!before || follows(newer) || given_up || covered || held, || {
            let (when, ours) = (when(view, newer), when(view, known));
            format!("{id} {ours} was taken in again ({right:?}), {other} {when} was not")
        })?;
    }
    Ok(())
}

/// For messages to people.
fn when(view: &View<'_>, known: &Known) -> String {
    let accepted = known.accepted.iter().map(|it| {
        let right = view.right(known, it);
        format!("{:.3} by {} {right:?}", view.time(it.at), it.life)
    });
    let accepted: Vec<String> = accepted.collect();
    let aside = known.aside.iter().map(|(at, aside)| format!("{:.3} {aside:?}", view.time(*at)));
    let delay = view.scenario.messages[known.message].delay;
    format!("({}; {accepted:?} {:?}{delay:?})", view.topic(known), aside.collect::<Vec<_>>())
}
