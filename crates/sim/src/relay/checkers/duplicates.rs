//! A message is taken in twice only if the first time could not be known or settled: no answer, an answer
//! that says nothing, or a lane that was lost.

use super::ensure;
use crate::relay::{
    End, Event,
    view::{Acceptance, Known, Right, View},
};
use tidegate_core::{
    Position,
    sink::{Outcome, Verdict},
};

pub fn check(view: &View<'_>, _: &End) -> Result<(), String> {
    for (id, known) in &view.messages {
        for two in known.accepted.windows(2) {
            ensure(is_excused(view, *id, known, &two[0], &two[1]), || {
                let when = |it: &Acceptance| {
                    let right = view.right(known, it);
                    format!("at {:.3} from relay {} ({right:?})", view.time(it.at), it.life)
                };
                format!(
                    "{id} on {} twice: {}, and {}; set aside {:?}",
                    view.topic(known),
                    when(&two[0]),
                    when(&two[1]),
                    known.aside.iter().map(|(at, it)| (view.time(*at), it)).collect::<Vec<_>>(),
                )
            })?;
        }
    }
    Ok(())
}

fn is_excused(
    view: &View<'_>,
    id: Position,
    known: &Known,
    first: &Acceptance,
    second: &Acceptance,
) -> bool {
    let answer = view.requests.get(&first.request).and_then(|request| {
        let (at, outcome) = request.answer.as_ref()?;
        let place = request.ids.iter().position(|it| *it == id)?;
        let done = match outcome {
            Outcome::Answered(verdicts) => verdicts.get(place) == Some(&Verdict::Done),
            _ => false,
        };
        done.then_some(*at)
    });
    let Some(answered) = answer.filter(|at| *at < second.at) else { return true };
    let mut claims = known.claimed.iter().filter(|(_, life)| *life == second.life);
    let read = claims.next().map_or(first.request, |(at, _)| first.request.min(*at));
    let lost = known.lane.is_some_and(|lane| view.was_lost(lane, read, second.at));
    lost || view.right(known, first) != Right::Valid
        || view.right(known, second) != Right::Valid
        || ended_without_store(view, first.life, answered, second.at)
}

/// Whether a relay ended, and its store did not answer meanwhile: it could not settle. Where each message is marked by
/// itself, a store that is slow now and then is too slow for many.
fn ended_without_store(view: &View<'_>, life: usize, from: usize, to: usize) -> bool {
    let own = || view.history[from..to].iter().filter(|entry| entry.life == life);
    let ended = own().any(|entry| matches!(entry.event, Event::Ended));
    let lives = &view.scenario.lives;
    let slow =
        view.scenario.index.is_some() && lives.get(life).is_some_and(|it| it.faults.slow > 0.0);
    ended && (slow || own().any(|entry| matches!(entry.event, Event::Failed { .. })))
}
