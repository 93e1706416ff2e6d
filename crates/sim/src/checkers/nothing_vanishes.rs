//! Every run ends as done, with its result if it is to be kept, or as dead.

use super::{ensure, lost_work::given_up};
use crate::{End, Plan, plan::BatchPlan, workload::Behaviour, world::BatchEnd};
use std::collections::BTreeMap;
use tidegate_core::{BatchState, ExceptionState, Run};

pub fn check(plan: &Plan, end: &End) -> Result<(), String> {
    plan.batches.iter().zip(&end.batches).try_for_each(|(planned, got)| check_batch(planned, got))
}

fn check_batch(planned: &BatchPlan, got: &BatchEnd) -> Result<(), String> {
    let given_up = given_up(got);
    let mut results = BTreeMap::new();
    for page in &got.pages {
        for (index, result) in page.entries().ok_or("a page is damaged")? {
            let twice = results.insert(index, result.get().to_owned()).is_some();
            ensure(!twice, || format!("run {index} has two results"))?;
        }
    }
    let mut dead: BTreeMap<u64, ExceptionState> =
        got.exceptions.iter().map(|exception| (exception.index, exception.state)).collect();
    for index in 0..planned.runs {
        let expected = planned.behaviour.of(&mut Run::new(planned.seed, index));
        let dies = Behaviour::dead_after(expected, planned.retry.max_attempts).is_some()
            || given_up.contains(&index);
        let kept = !dies && planned.keep.keeps(index, planned.runs);
        let wanted = kept.then(|| expected.value.to_string());
        let found = results.remove(&index);
        ensure(found == wanted, || format!("run {index}: {found:?} instead of {wanted:?}"))?;
        let found = dead.remove(&index);
        let wanted = dies.then_some(ExceptionState::Dead);
        ensure(found == wanted, || format!("run {index}: {found:?} instead of {wanted:?}"))?;
    }
    ensure(results.is_empty() && dead.is_empty(), || "runs that the batch does not have".into())?;
    let wanted = match got.exceptions.len() {
        0 => BatchState::Completed,
        _ => BatchState::CompletedWithFailures,
    };
    ensure(got.status.state == wanted, || format!("the batch is {:?}", got.status.state))
}
