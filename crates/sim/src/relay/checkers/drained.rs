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
            StuckState::Behind => end.stuck.iter().any(|before| holds(before, stuck)),
            StuckState::Retry | StuckState::Later => false,
        };
        ensure(fine, || format!("left behind: {stuck:?}"))?;
    }
    let outstanding: u64 = end.topics.iter().map(|topic| topic.outstanding).sum();
    let waiting: u64 = end.topics.iter().map(|topic| topic.waiting + topic.unrouted).sum();
    ensure(outstanding == waiting, || {
        format!("{} messages were not read: {:?}", outstanding - waiting, end.topics)
    })
}

/// Whether a dead message keeps another one back.
fn holds(before: &Stuck, stuck: &Stuck) -> bool {
    before.state == StuckState::Dead
        && before.then != OnDead::Skip
        && position(&before.id) < position(&stuck.id)
        && before.key == stuck.key
        && before.sink == stuck.sink
}
