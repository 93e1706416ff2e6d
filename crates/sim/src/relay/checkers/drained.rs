//! A healthy relay has left nothing that can be delivered without somebody's help.

use super::ensure;
use crate::relay::{End, history::position, view::View};
use tidegate_core::outbox::{OnDead, Stuck, StuckState};

pub fn check(view: &View<'_>, end: &End) -> Result<(), String> {
    let routing = &view.scenario.routings[view.scenario.routings.len() - 1];
    for stuck in &end.stuck {
        let fine = match stuck.state {
            StuckState::Dead => true,
            StuckState::Unrouted => routing.sink_of(&stuck.topic).is_none(),
            StuckState::Behind => {
                let any = may_be_first(view, stuck);
                end.stuck.iter().any(|before| holds(before, stuck, any))
            }
            StuckState::Retry | StuckState::Later => false,
        };
        ensure(fine, || {
            let same = end.stuck.iter().filter(|it| it.key == stuck.key && it.sink == stuck.sink);
            format!(
                "left behind: {stuck:?} of {:?}",
                same.map(|it| (&it.id, it.state)).collect::<Vec<_>>()
            )
        })?;
    }
    let outstanding: u64 = end.topics.iter().map(|topic| topic.outstanding).sum();
    let waiting: u64 = end.topics.iter().map(|topic| topic.waiting + topic.unrouted).sum();
    ensure(outstanding == waiting, || {
        format!("{} messages were not read: {:?}", outstanding - waiting, end.topics)
    })
}

/// Whether a message may wait behind later ones of its key: a store that is read by state gives a position when it
/// reads, again after a crash, and not before a message is due. What was set aside keeps its own.
fn may_be_first(view: &View<'_>, stuck: &Stuck) -> bool {
    let known = view.messages.get(&position(&stuck.id));
    let delayed = known.is_some_and(|it| view.scenario.messages[it.message].delay.is_some());
    let rerouted = view.scenario.routings.len() > 1;
    view.scenario.index.as_ref().is_some_and(|it| delayed || rerouted || !it.keeps_order())
}

/// Whether a dead message keeps another one back: one before it, or `any`.
fn holds(before: &Stuck, stuck: &Stuck, any: bool) -> bool {
    before.state == StuckState::Dead
        && before.then != OnDead::Skip
        && (any || position(&before.id) < position(&stuck.id))
        && before.key == stuck.key
        && before.sink == stuck.sink
}
