//! One lease: its items in order, group by group.

use super::{Readable, Route, Scene, Verdicts, send};
use crate::act::{Acted, Acting, Desk, HandsError, Next, Yield};
use std::{sync::Arc, time::Duration};
use tidegate_core::{
    RetryItem, RunError,
    run::Emitted,
    sink::{Item, Verdict},
};
use tokio::time::Instant;

/// Most bytes of payload in one request, unless a single item has more: bounds the memory.
const MAX_GROUP_BYTES: usize = 1 << 20;

/// How long an item waits that a sink is too busy for, if the sink does not say.
const BUSY: Duration = Duration::from_secs(1);

/// Delivers all items of a lease.
pub(super) async fn deliver(
    route: Arc<Route>,
    desk: Arc<Desk>,
    acting: Arc<Acting>,
) -> Result<(), HandsError> {
    while let Some((_, turn)) = acting.begin(Instant::now()) {
        let most = route.channel.size().get();
        let items = acting.upcoming(most);
        let readable = read(&route, &items)?;
        let (verdicts, ended) = deliver_group(&route, &desk, &readable).await;
        let next = record(&desk, &acting, turn, verdicts);
        ended?;
        if next == Next::Wait {
            let full = acting.clone();
            // A failure to wait would be a bug in the runtime; the next turn sees that it is full.
            let _ = tokio::task::spawn_blocking(move || full.wait_until_collected()).await;
        }
    }
    Ok(())
}

impl Scene for Desk {
    fn may_send(&self) -> bool {
        true
    }

    fn closed(&self) -> impl Future<Output = ()> + Send {
        Desk::closed(self)
    }

    fn is_alone(&self) -> bool {
        self.load().0 <= 1
    }
}

/// Sends what can be read. Those up to the last that has a verdict have one.
async fn deliver_group(
    route: &Route,
    desk: &Desk,
    items: &[Readable],
) -> (Vec<Verdict>, Result<(), HandsError>) {
    let readable: Vec<Item<'_>> = items.iter().filter_map(item).collect();
    let known = Verdicts::none(readable.len());
    let ended = send(&route.channel, desk, &readable, &known).await;
    let mut sent = known.take().into_iter();
    let verdict = |item: &Readable| match &item.payload {
        Ok(_) => sent.next().flatten(),
        Err(reason) => Some(Verdict::Dead(reason.clone())),
    };
    let mut verdicts: Vec<Option<Verdict>> = items.iter().map(verdict).collect();
    let last = verdicts.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    verdicts.truncate(last);
    // What was delivered behind those that were not must be settled, and nobody is at fault.
    let later = Verdict::Throttled { retry_after: Some(Duration::ZERO) };
    (verdicts.into_iter().map(|verdict| verdict.unwrap_or(later.clone())).collect(), ended)
}

fn item(readable: &Readable) -> Option<Item<'_>> {
    let payload = readable.payload.as_ref().ok()?;
    Some(Item::record(&readable.id, payload))
}

/// Reads the items of one request: as many as fit.
fn read(route: &Route, items: &[RetryItem]) -> Result<Vec<Readable>, HandsError> {
    let indexes: Vec<u64> = items.iter().map(|item| item.index).collect();
    let mut readable = route.items.read(&indexes).map_err(HandsError::Sink)?;
    let mut bytes = 0;
    let fit = readable.iter().take_while(|item| {
        bytes += item.payload.as_ref().map_or(0, String::len);
        bytes <= MAX_GROUP_BYTES
    });
    let fit = fit.count().max(1);
    readable.truncate(fit);
    Ok(readable)
}

/// Records one verdict after the other, and leaves the group so that the next one can begin.
fn record(desk: &Desk, acting: &Acting, turn: u32, verdicts: Vec<Verdict>) -> Next {
    let emitted = Emitted::default();
    let mut next = Next::End;
    let now = Instant::now();
    for verdict in verdicts {
        let acted: Acted<'_> = match verdict {
            Verdict::Done => Ok(Yield { result: b"null", emitted: &emitted }),
            Verdict::Throttled { retry_after } => {
                Err(RunError::postponed("the sink is too busy", retry_after.unwrap_or(BUSY)))
            }
            Verdict::Unavailable(reason) => Err(RunError::postponed(reason, BUSY)),
            Verdict::Behind => Err(RunError::postponed("behind another", Duration::ZERO)),
            Verdict::Retry(reason) => Err(RunError::new(reason)),
            Verdict::Dead(reason) => Err(RunError::permanent(reason)),
        };
        next = acting.record(turn, acted, now);
    }
    acting.rest_begun();
    desk.recorded(next);
    desk.room_changed();
    next
}
