//! One group, until each of its items has a verdict.

use super::{Readable, Route};
use crate::act::{Desk, HandsError};
use std::{sync::atomic::Ordering::Relaxed, time::Duration};
use tidegate_core::sink::{Answer, Delivery, Item, Outcome, Verdict};
use tidegate_pacer::{self as pacer, Clock, Permit};

const NO_ANSWER: &str = "no answer in time";
/// A sink that was not there so often for some items may be there for half of them: perhaps it ends
/// at one.
const ABSENCES: u32 = 3;
/// For the last item of all, so often.
const ALONE: u32 = 10;

/// Sends items until each has a verdict, in their order. After a stop or a problem nothing more is
/// sent, and those up to the last that has a verdict have one.
pub(super) async fn send(
    route: &Route,
    desk: &Desk,
    items: &[Readable],
) -> (Vec<Verdict>, Result<(), HandsError>) {
    let mut verdicts: Vec<Option<Verdict>> = items.iter().map(unreadable).collect();
    let ended = send_all(route, desk, items, &mut verdicts).await;
    let last = verdicts.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    verdicts.truncate(last);
    // What was delivered behind those that were not must be settled, and nobody is at fault.
    let later = Verdict::Throttled { retry_after: Some(Duration::ZERO) };
    (verdicts.into_iter().map(|verdict| verdict.unwrap_or(later.clone())).collect(), ended)
}

async fn send_all(
    route: &Route,
    desk: &Desk,
    items: &[Readable],
    verdicts: &mut [Option<Verdict>],
) -> Result<(), HandsError> {
    let mut pending: Vec<Part> = parts(verdicts);
    while let Some(part) = pending.pop() {
        let group: Vec<Item<'_>> = part.items.iter().filter_map(|&at| item(&items[at])).collect();
        let permit = tokio::select! {
            biased;
            () = desk.closed() => break,
            permit = wait(route) => permit?,
        };
        let (outcome, there) = attempt(route, permit, &group).await?;
        // What the sink is not there for comes after the rest: it may be there for that.
        let last = matches!(outcome, Outcome::Unavailable(_) | Outcome::TimedOut);
        let at = if last { 0 } else { pending.len() };
        let scene = Scene { there, alone: pending.is_empty() && desk.load().0 <= 1 };
        pending.splice(at..at, judge(route, part, outcome, scene, verdicts)?);
    }
    Ok(())
}

/// What else is known when an answer comes.
struct Scene {
    /// Whether the sink answers at all.
    there: bool,
    /// Whether nobody else is left to be answered.
    alone: bool,
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

fn unreadable(item: &Readable) -> Option<Verdict> {
    item.payload.as_ref().err().map(|reason| Verdict::Dead(reason.clone()))
}

fn item(readable: &Readable) -> Option<Item<'_>> {
    let payload = readable.payload.as_ref().ok()?;
    Some(Item::record(&readable.id, payload))
}

fn parts(verdicts: &[Option<Verdict>]) -> Vec<Part> {
    let open = verdicts.iter().enumerate().filter(|(_, verdict)| verdict.is_none());
    let items: Vec<usize> = open.map(|(at, _)| at).collect();
    if items.is_empty() { Vec::new() } else { vec![Part::new(items)] }
}

/// Waits for the sink to be there, and at the gate: one after the other, so that whoever found it
/// absent is not the first to ask again.
async fn wait(route: &Route) -> Result<Permit, HandsError> {
    let _turn = route.line.lock().await;
    loop {
        let until = route.breaker().until();
        route.clock.sleep_until(until).await;
        let permit = route.gate.start(&route.clock).await.map_err(|too_long| {
            HandsError::Sink(format!("{too_long}: run the same command later to go on"))
        })?;
        // It may have gone while this one waited at the gate.
        if route.breaker().until() <= until {
            return Ok(permit);
        }
    }
}

/// Sends once, and tells the pacer how it went. Also returns whether the sink is there.
async fn attempt(
    route: &Route,
    permit: Permit,
    group: &[Item<'_>],
) -> Result<(Outcome, bool), HandsError> {
    let sent = route.clock.time();
    let delivery = Delivery { connection: permit.connection(), items: group };
    let meter = &route.meter;
    meter.requests.fetch_add(1, Relaxed);
    let before = meter.answers.load(Relaxed);
    let answer = route.sink.deliver(delivery).await;
    let now = route.clock.time();
    teach(permit, &answer, now);
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
        _ => {
            meter.answers.fetch_add(1, Relaxed);
            route.breaker().close();
            None
        }
    };
    match absent {
        Some(reason) if !route.breaker().trip(reason, sent, now) => {
            Err(HandsError::Sink(format!("{reason}; it is not there for too long")))
        }
        absent => {
            let there = absent.is_none();
            Ok((answer.outcome, there))
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
        | Outcome::Broken(_) => pacer::Outcome::Failed,
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
    route: &Route,
    part: Part,
    outcome: Outcome,
    scene: Scene,
    verdicts: &mut [Option<Verdict>],
) -> Result<Vec<Part>, HandsError> {
    let count = part.items.len();
    match outcome {
        // It failed at the whole: perhaps for the sake of one.
        Outcome::Answered(answers) if count > 1 && answers.iter().all(is_retry) => {
            Ok(part.halves())
        }
        Outcome::Answered(answers) if answers.len() == count => {
            route.size().succeeded(count);
            let busy = answers.iter().any(|answer| throttled(answer).is_some());
            route.meter.throttled.fetch_add(u64::from(busy), Relaxed);
            part.items.iter().zip(answers).for_each(|(&at, v)| verdicts[at] = Some(v));
            Ok(Vec::new())
        }
        Outcome::Answered(answers) => Err(HandsError::Sink(format!(
            "the sink gave {} answers for {count} items",
            answers.len()
        ))),
        Outcome::Throttled { .. } => {
            route.meter.throttled.fetch_add(1, Relaxed);
            Ok(vec![part])
        }
        Outcome::Broken(reason) => Err(HandsError::Sink(reason)),
        Outcome::Unavailable(reason) => {
            Ok(absent(route, part, Absence::refused(reason, scene.alone), verdicts))
        }
        Outcome::TimedOut if count == 1 || !scene.there => {
            Ok(absent(route, part, Absence::silent(scene.alone), verdicts))
        }
        Outcome::TooLarge(reason) | Outcome::Refused(reason) if count == 1 => {
            verdicts[part.items[0]] = Some(Verdict::Dead(reason));
            Ok(Vec::new())
        }
        Outcome::TooLarge(_) | Outcome::TimedOut => {
            route.size().failed(count);
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
    route: &Route,
    mut part: Part,
    absence: Absence,
    verdicts: &mut [Option<Verdict>],
) -> Vec<Part> {
    let answers = route.meter.answers.load(Relaxed);
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
            route.size().failed(count);
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
    /// The second half first: parts are taken from the end.
    fn halves(mut self) -> Vec<Part> {
        let second = self.items.split_off(self.items.len() / 2);
        vec![Part::new(second), Part::new(self.items)]
    }
}
