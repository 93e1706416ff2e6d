//! A relay that is asked to stop ends within its grace, and holds no lane afterwards.

use super::ensure;
use crate::relay::{End, Event, Hazard, life::LAST_CALLS, view::View};
use std::time::Duration;

/// Timers are coarse.
const SLACK: Duration = Duration::from_millis(50);

pub fn check(view: &View<'_>, _: &End) -> Result<(), String> {
    for (life, plan) in view.scenario.lives.iter().enumerate() {
        let at = |wanted: fn(&Event) -> bool| {
            view.history.iter().position(|entry| entry.life == life && wanted(&entry.event))
        };
        let told = at(|event| matches!(event, Event::ToldToStop));
        let ended = at(|event| matches!(event, Event::Ended));
        let (Some(told), Some(ended)) = (told, ended) else { continue };
        let frozen = !plan.frosts.is_empty();
        let took = view.history[ended].at - view.history[told].at;
        ensure(frozen || took <= plan.grace + LAST_CALLS + SLACK, || {
            format!("relay {life} took {took:?} to stop, with a grace of {:?}", plan.grace)
        })?;
        // A broken connection may leave lanes that the relay could not give back: they expire.
        let calm = !view
            .history
            .iter()
            .any(|entry| entry.life == life && matches!(entry.event, Event::Failed { .. }));
        let slow = plan.faults.slow > 0.0 || !view.scenario.hazards.has(Hazard::Stop);
        let kept = view.kept(life);
        ensure(!calm || frozen || slow || kept == 0, || {
            format!("relay {life} stopped and kept {kept} lanes")
        })?;
    }
    Ok(())
}
