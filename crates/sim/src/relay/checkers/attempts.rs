//! A message uses up no more attempts than it failed by itself, and dies only when they are used up, or of
//! a verdict.
//!
//! A sink that is not there for one item alone, three times, while it answers for others, counts as that
//! item's own failure: perhaps it ends at it.

use super::ensure;
use crate::relay::{
    End,
    view::{Known, Place, View},
};
use tidegate_core::{
    Position,
    outbox::Aside,
    sink::{Outcome, Verdict},
};

/// How often a sink must not have been there for one item alone.
const ABSENCES: u32 = 3;

#[derive(Clone, Copy, Debug, Default)]
struct Failures {
    own: u32,
    absent: u32,
    fatal: bool,
}

pub fn check(view: &View<'_>, _: &End) -> Result<(), String> {
    for (id, known) in &view.messages {
        let policy = view.scenario.policy(known.message);
        for (at, aside) in &known.aside {
            let (attempts, dead) = match aside {
                Aside::Retry { attempts, .. } => (*attempts, false),
                Aside::Dead { attempts, then, .. } => {
                    ensure(*then == policy.on_dead, || format!("{id} died as {then:?}"))?;
                    (*attempts, true)
                }
                _ => continue,
            };
            let failures = failures(view, *id, known, *at);
            let most = failures.own + failures.absent / ABSENCES;
            ensure(attempts <= most, || {
                format!("{id} used up {attempts} attempts at {:.3}: {failures:?}", view.time(*at))
            })?;
            let may_die = failures.fatal || attempts >= policy.retry.max_attempts;
            ensure(!dead || may_die, || {
                let most = policy.retry.max_attempts;
                format!("{id} died after {attempts} of {most} attempts: {failures:?}")
            })?;
        }
    }
    Ok(())
}

/// How a message failed by a time, since somebody made it due again. What a relay got before that may
/// still be on its way to the store, so that counts, too.
fn failures(view: &View<'_>, id: Position, known: &Known, by: Place) -> Failures {
    let since = known.retried.iter().rev().filter(|at| **at < by).nth(1).copied().unwrap_or(0);
    let mut failures = Failures::default();
    for (_, request) in view.requests.range(since..by) {
        let Some(place) = request.ids.iter().position(|it| *it == id) else { continue };
        let Some((answered, outcome)) = &request.answer else { continue };
        let alone = request.ids.len() == 1;
        match outcome {
            _ if *answered > by => {}
            Outcome::Answered(verdicts) => match verdicts.get(place) {
                Some(Verdict::Retry(_)) => failures.own += 1,
                Some(Verdict::Dead(_)) => {
                    failures.own += 1;
                    failures.fatal = true;
                }
                _ => {}
            },
            Outcome::Refused(_) | Outcome::TooLarge(_) if alone => {
                failures.own += 1;
                failures.fatal = true;
            }
            Outcome::Unavailable(_) | Outcome::TimedOut if alone => failures.absent += 1,
            _ => {}
        }
    }
    failures
}
