//! One group, until each of its items has a verdict.

use super::{Channel, Manner, waits::Waiting};
use crate::act::HandsError;
use futures_util::FutureExt;
use std::{
    collections::HashSet,
    future::pending,
    panic::AssertUnwindSafe,
    sync::{Mutex, atomic::Ordering::Relaxed},
    time::Duration,
};
use tidegate_core::sink::{Answer, Delivery, Hint, Item, Outcome, Verdict};
use tidegate_pacer::{self as pacer, Clock, Permit, TooLong};
use tokio::sync::MutexGuard;

const NO_ANSWER: &str = "no answer in time";
/// A sink that was not there so often for some items may be there for half of them: perhaps it ends
/// at one.
const ABSENCES: u32 = 3;
/// For the last item of all, so often.
const ALONE: u32 = 10;

/// What else is known while a group is sent.
pub(crate) trait Scene: Send + Sync {
    /// Returns when nothing more may be sent.
    fn closed(&self) -> impl Future<Output = ()> + Send;

    /// Whether something may be sent now, after a wait.
    fn may_send(&self) -> bool;

    /// Whether nobody else is left to be answered.
    fn is_alone(&self) -> bool;
}

/// The verdicts on the items of a group, as far as they are known: also to somebody who does not wait for
/// the rest.
#[derive(Debug)]
pub(crate) struct Verdicts(Mutex<Vec<Option<Verdict>>>);

impl Verdicts {
    /// Nothing is known yet.
    pub fn none(items: usize) -> Self {
        Self(Mutex::new(vec![None; items]))
    }

    /// What is known.
    pub fn take(&self) -> Vec<Option<Verdict>> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Option<Verdict>>> {
        self.0.lock().expect("nothing panics while it holds the lock")
    }
}

/// Sends items until each has a verdict. After a stop or a problem nothing more is sent, and some have
/// none. Items with the same key are sent in their order, and none after one that was not done.
pub(crate) async fn send(
    channel: &Channel,
    scene: &impl Scene,
    items: &[Item<'_>],
    verdicts: &Verdicts,
) -> Result<(), HandsError> {
    let mut pending = vec![Part::new((0..items.len()).collect())];
    let waiting = channel.waits.begin();
    while let Some(mut part) = pending.pop() {
        hold_back(&mut part, items, &mut verdicts.lock());
        if part.items.is_empty() {
            continue;
        }
        let group: Vec<Item<'_>> = part.items.iter().map(|&at| items[at]).collect();
        let (permit, turn) = tokio::select! {
            biased;
            () = scene.closed() => break,
            permit = wait(channel) => permit?,
        };
        if !scene.may_send() {
            break;
        }
        let (outcome, there) = attempt(channel, permit, &group, &waiting).await?;
        drop(turn);
        // What the sink is not there for comes after the rest: it may be there for that.
        let absent = matches!(outcome, Outcome::Unavailable(_) | Outcome::TimedOut);
        let last = absent && channel.manner == Manner::Load;
        let at = if last { 0 } else { pending.len() };
        let alone = pending.is_empty() && scene.is_alone();
        let again = judge(channel, part, outcome, there, alone, &mut verdicts.lock())?;
        pending.splice(at..at, again);
    }
    Ok(())
}

/// Takes out what follows an item with the same key that was not done.
fn hold_back(part: &mut Part, items: &[Item<'_>], verdicts: &mut [Option<Verdict>]) {
    let not_done =
        |verdict: &Option<Verdict>| verdict.as_ref().is_some_and(|v| *v != Verdict::Done);
    let answered = items.iter().zip(verdicts.iter());
    let held: HashSet<&str> = answered
        .filter(|(_, verdict)| not_done(verdict))
        .filter_map(|(item, _)| item.order())
        .collect();
    part.items.retain(|&at| {
        let is_held = items[at].order().is_some_and(|key| held.contains(key));
        if is_held {
            verdicts[at] = Some(Verdict::Behind);
        }
        !is_held
    });
}

/// Items that are sent together.
struct Part {
    /// By their place in the group.
    items: Vec<usize>,
    /// How often the sink was not there for them …
    absences: u32,
    /// … and how many answers others had got when that began.
    answers: u64,
}

impl Part {
    fn new(items: Vec<usize>) -> Self {
        Self { items, absences: 0, answers: 0 }
    }
}

/// Waits for the sink to be there, and at the gate: one after the other, so that whoever found it
/// absent is not the first to ask again. While it is not known to be back, the others wait for the
/// answer to the first.
async fn wait(channel: &Channel) -> Result<(Permit, Option<MutexGuard<'_, ()>>), HandsError> {
    let turn = channel.line.lock().await;
    loop {
        let Some(until) = channel.until() else { return pending().await };
        channel.clock.sleep_until(until).await;
        let permit = match channel.gate.start(&channel.clock).await {
            Ok(permit) => permit,
            Err(TooLong(left)) if channel.manner == Manner::Relay => {
                channel.clock.sleep_until(channel.clock.time() + left).await;
                continue;
            }
            Err(too_long) => {
                let advice = "run the same command later to go on";
                return Err(HandsError::Sink(format!("{too_long}: {advice}")));
            }
        };
        // It may have gone while this one waited at the gate.
        let gone = channel.until().is_none_or(|later| later > until);
        if !gone {
            let open = channel.absence().is_some();
            return Ok((permit, open.then_some(turn)));
        }
    }
}

/// Sends once, and tells the pacer how it went. Also returns whether the sink is there.
async fn attempt(
    channel: &Channel,
    permit: Permit,
    group: &[Item<'_>],
    waiting: &Waiting<'_>,
) -> Result<(Outcome, bool), HandsError> {
    let sent = channel.clock.time();
    waiting.asked(sent);
    let delivery = Delivery { connection: permit.connection(), items: group };
    let meter = &channel.meter;
    meter.requests.fetch_add(1, Relaxed);
    let before = meter.answers.load(Relaxed);
    let delivered = AssertUnwindSafe(channel.sink.deliver(delivery)).catch_unwind().await;
    let answer = checked(delivered.unwrap_or_else(|_| panicked()), group.len());
    let now = channel.clock.time();
    teach(permit, &answer, now);
    let stalled = stalled(&answer.outcome);
    waiting.answered(stalled);
    channel.moved(stalled, sent, now);
    let absent = match &answer.outcome {
        Outcome::Unavailable(reason) => {
            meter.unavailable.fetch_add(1, Relaxed);
            Some(reason.as_str())
        }
        Outcome::TimedOut => {
            meter.timed_out.fetch_add(1, Relaxed);
            // Others may have been answered meanwhile: then it is there.
            (meter.answers.load(Relaxed) == before).then_some(NO_ANSWER)
        }
        Outcome::Gone(reason) if channel.manner == Manner::Relay => {
            channel.breaker().end(reason, now);
            Some(reason.as_str())
        }
        Outcome::Broken(reason) if channel.manner == Manner::Relay => Some(reason.as_str()),
        Outcome::Answered(verdicts) if verdicts.iter().any(is_unavailable) => {
            meter.unavailable.fetch_add(1, Relaxed);
            verdicts.iter().find_map(|verdict| match verdict {
                Verdict::Unavailable(reason) => Some(reason.as_str()),
                _ => None,
            })
        }
        _ => {
            meter.answers.fetch_add(1, Relaxed);
            channel.answered(now);
            None
        }
    };
    let hope = absent.is_none_or(|reason| channel.absent(reason, sent, now));
    if !hope && channel.manner == Manner::Load {
        let reason = absent.unwrap_or(NO_ANSWER);
        return Err(HandsError::Sink(format!("{reason}; it is not there for too long")));
    }
    let there = absent.is_none();
    Ok((answer.outcome, there))
}

/// Perhaps for the sake of one item: it is looked for.
fn panicked() -> Answer {
    let outcome = Outcome::Refused("the sink panicked".to_owned());
    Answer { outcome, hint: Hint::default() }
}

/// A sink that does not say what became of each item is not to be trusted with more.
fn checked(answer: Answer, items: usize) -> Answer {
    match answer.outcome {
        Outcome::Answered(verdicts) if verdicts.len() != items => {
            let reason = format!("the sink gave {} answers for {items} items", verdicts.len());
            Answer { outcome: Outcome::Broken(reason), ..answer }
        }
        outcome => Answer { outcome, ..answer },
    }
}

/// Why nothing was taken and no attempt used up: this may go on for ever.
fn stalled(outcome: &Outcome) -> Option<&str> {
    match outcome {
        Outcome::Throttled { reason, .. }
        | Outcome::Unavailable(reason)
        | Outcome::Broken(reason)
        | Outcome::Gone(reason) => Some(reason),
        Outcome::TimedOut => Some(NO_ANSWER),
        Outcome::Refused(_) | Outcome::TooLarge(_) => None,
        Outcome::Answered(verdicts) => {
            let moves =
                |it: &Verdict| matches!(it, Verdict::Done | Verdict::Retry(_) | Verdict::Dead(_));
            if verdicts.iter().any(moves) {
                return None;
            }
            verdicts.iter().find_map(|verdict| match verdict {
                Verdict::Throttled { .. } => Some("the sink is too busy"),
                Verdict::Unavailable(reason) => Some(reason),
                _ => None,
            })
        }
    }
}

/// Tells the pacer what the answer means for the pace.
fn teach(permit: Permit, answer: &Answer, now: Duration) {
    let outcome = match &answer.outcome {
        Outcome::Answered(verdicts) => match verdicts.iter().filter_map(throttled).max() {
            Some(retry_after) => pacer::Outcome::Throttled { retry_after },
            None => pacer::Outcome::Succeeded,
        },
        Outcome::Throttled { retry_after, .. } => {
            pacer::Outcome::Throttled { retry_after: *retry_after }
        }
        Outcome::TimedOut => pacer::Outcome::TimedOut,
        Outcome::Refused(_)
        | Outcome::TooLarge(_)
        | Outcome::Unavailable(_)
        | Outcome::Broken(_)
        | Outcome::Gone(_) => pacer::Outcome::Failed,
    };
    let remaining = answer.hint.remaining;
    let hint = pacer::Hint {
        parallelism: answer.hint.parallelism,
        remaining: remaining.map(|(requests, reset)| pacer::Remaining { requests, reset }),
    };
    permit.end(outcome, hint, now);
}

/// What follows from an answer: verdicts, or what to send again.
fn judge(
    channel: &Channel,
    part: Part,
    outcome: Outcome,
    there: bool,
    alone: bool,
    verdicts: &mut [Option<Verdict>],
) -> Result<Vec<Part>, HandsError> {
    let count = part.items.len();
    match outcome {
        // It failed at the whole: perhaps for the sake of one.
        Outcome::Answered(answers)
            if count > 1 && channel.manner == Manner::Load && answers.iter().all(is_retry) =>
        {
            Ok(part.halves())
        }
        Outcome::Answered(answers) if answers.iter().any(is_unavailable) => {
            Ok(part.without(answers, verdicts))
        }
        Outcome::Answered(answers) => {
            channel.size().succeeded(count);
            let busy = answers.iter().any(|answer| throttled(answer).is_some());
            channel.meter.throttled.fetch_add(u64::from(busy), Relaxed);
            part.items.iter().zip(answers).for_each(|(&at, v)| verdicts[at] = Some(v));
            Ok(Vec::new())
        }
        Outcome::Throttled { .. } => {
            channel.meter.throttled.fetch_add(1, Relaxed);
            Ok(vec![part])
        }
        Outcome::Broken(_) | Outcome::Gone(_) if channel.manner == Manner::Relay => Ok(vec![part]),
        Outcome::Broken(reason) | Outcome::Gone(reason) => Err(HandsError::Sink(reason)),
        Outcome::Unavailable(reason) => {
            let alone = alone && channel.manner == Manner::Load;
            Ok(absent(channel, part, Absence::refused(reason, alone), verdicts))
        }
        Outcome::TimedOut if count == 1 || !there => {
            let alone = alone && channel.manner == Manner::Load;
            Ok(absent(channel, part, Absence::silent(alone), verdicts))
        }
        Outcome::TooLarge(reason) | Outcome::Refused(reason) if count == 1 => {
            verdicts[part.items[0]] = Some(Verdict::Dead(reason));
            Ok(Vec::new())
        }
        Outcome::TooLarge(_) | Outcome::TimedOut => {
            channel.size().failed(count);
            Ok(part.halves())
        }
        Outcome::Refused(_) => Ok(part.halves()),
    }
}

/// Whether the sink could not take an item now, and how long it wants to be left alone then.
fn throttled(verdict: &Verdict) -> Option<Option<Duration>> {
    match verdict {
        Verdict::Throttled { retry_after } => Some(*retry_after),
        _ => None,
    }
}

fn is_unavailable(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Unavailable(_))
}

fn is_retry(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Retry(_))
}

/// How a sink is not there.
struct Absence {
    reason: String,
    /// It did not even say so: perhaps it had too much to do.
    silent: bool,
    /// If nobody else is left to be answered, so often is the item's own fault.
    most: Option<u32>,
}

impl Absence {
    fn refused(reason: String, alone: bool) -> Self {
        Self { reason, silent: false, most: alone.then_some(ALONE) }
    }

    fn silent(alone: bool) -> Self {
        Self { reason: NO_ANSWER.to_owned(), silent: true, most: alone.then_some(ABSENCES) }
    }
}

/// The sink was not there. No item is at fault, unless it is there for all others.
fn absent(
    channel: &Channel,
    mut part: Part,
    absence: Absence,
    verdicts: &mut [Option<Verdict>],
) -> Vec<Part> {
    let answers = channel.meter.answers.load(Relaxed);
    if part.absences == 0 {
        part.answers = answers;
    }
    part.absences += 1;
    if part.absences < ABSENCES {
        return vec![part];
    }
    let count = part.items.len();
    if count > 1 {
        if absence.silent {
            channel.size().failed(count);
        }
        return part.halves();
    }
    // Others were answered meanwhile; or there are none left, and earlier ones were.
    let often = absence.most.is_some_and(|most| answers > 0 && part.absences >= most);
    if answers == part.answers && !often {
        return vec![part];
    }
    verdicts[part.items[0]] = Some(Verdict::Retry(absence.reason));
    Vec::new()
}

impl Part {
    /// What the sink was not there for, and what waits behind that, is sent again.
    fn without(mut self, answers: Vec<Verdict>, verdicts: &mut [Option<Verdict>]) -> Vec<Part> {
        let mut again = Vec::new();
        for (at, answer) in self.items.drain(..).zip(answers) {
            match answer {
                Verdict::Unavailable(_) | Verdict::Behind => again.push(at),
                answer => verdicts[at] = Some(answer),
            }
        }
        vec![Part::new(again)]
    }

    /// The second half first: parts are taken from the end.
    fn halves(mut self) -> Vec<Part> {
        let second = self.items.split_off(self.items.len() / 2);
        vec![Part::new(second), Part::new(self.items)]
    }
}
