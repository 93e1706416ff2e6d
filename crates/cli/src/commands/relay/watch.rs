//! What is watched while a relay works.

use crate::show::number;
use std::{
    cell::OnceCell, collections::BTreeSet, convert::Infallible, future::pending, time::Duration,
};
use tidegate::{
    Stop,
    relay::{Relay, RelayWatch, Trouble, TroubleKind},
};
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval, timeout},
};

const REPORT_EVERY: Duration = Duration::from_secs(10);
/// How soon people learn that a sink is down.
const LOOK: Duration = Duration::from_millis(200);

/// How long a drain may get nowhere.
pub struct Patience {
    most: Option<Duration>,
    given_up: OnceCell<String>,
}

impl Patience {
    /// `None`: for ever.
    pub fn new(most: Option<Duration>) -> Self {
        Self { most, given_up: OnceCell::new() }
    }

    /// Stops the relay when nothing has become of any message for too long.
    pub async fn watch(&self, relay: &Relay, stop: &Stop) -> Infallible {
        let Some(most) = self.most else { return pending().await };
        let mut watch = relay.watch();
        loop {
            let before = watch.borrow_and_update().counts.moves();
            let moved = timeout(most, watch.wait_for(|now| now.counts.moves() != before)).await;
            match moved.map(|moved| moved.is_ok()) {
                Ok(true) => continue,
                // It has ended.
                Ok(false) => {}
                Err(_) => {
                    let _ = self.given_up.set(gave_up(most, relay));
                    stop.stop();
                }
            }
            return pending().await;
        }
    }

    /// What to say if it was given up.
    pub fn given_up(&self) -> Option<String> {
        self.given_up.get().cloned()
    }
}

fn gave_up(after: Duration, relay: &Relay) -> String {
    let begin = format!("gave up: nothing was delivered for {}", number::span(after));
    let troubles = relay.troubles(Duration::ZERO);
    let why = troubles.iter().map(|(sink, trouble)| told(sink, trouble));
    [begin].into_iter().chain(why).collect::<Vec<_>>().join("; ")
}

fn told(sink: &str, Trouble { kind, reason, lasts }: &Trouble) -> String {
    let lasts = number::span(*lasts);
    match kind {
        TroubleKind::Absent => format!("{sink} cannot take messages: {reason}"),
        TroubleKind::Stalled => format!("{sink} has put messages off for {lasts}: {reason}"),
        TroubleKind::Silent => format!("{sink} has not answered for {lasts}"),
        TroubleKind::Unreached => format!("{sink} could not be reached for {lasts}: {reason}"),
    }
}

/// Says at once which sinks cannot take messages, after a while which have put them off, and when they take them
/// again.
pub async fn tell_troubles(relay: &Relay) -> Infallible {
    let mut known = BTreeSet::new();
    loop {
        tokio::time::sleep(LOOK).await;
        let mut troubles = relay.troubles(relay.options().stalled_after);
        // One that was never reached is told of by whoever tried, and a slow answer may still come.
        let is_told = |kind| matches!(kind, TroubleKind::Absent | TroubleKind::Stalled);
        troubles.retain(|(sink, it)| is_told(it.kind) || known.contains(sink));
        for (sink, trouble) in &troubles {
            if known.insert(sink.clone()) {
                tracing::warn!("{}; they wait, and it is tried again", told(sink, trouble));
            }
        }
        known.retain(|it| {
            let lasts = troubles.iter().any(|(sink, _)| sink == it);
            if !lasts {
                tracing::info!("{it} takes messages again");
            }
            lasts
        });
    }
}

/// Stops the relay when nobody reads its standard output any more, as in `tidegate relay --to stdout | head`.
pub async fn stop_unread(
    mut watch: watch::Receiver<RelayWatch>,
    stdout: Option<usize>,
    stop: &Stop,
) -> Infallible {
    let is_gone = |watch: &RelayWatch| {
        let sink = stdout.and_then(|stdout| watch.sinks.get(stdout));
        sink.is_some_and(|sink| sink.absence.is_some())
    };
    let _ = watch.wait_for(is_gone).await;
    stop.stop();
    pending().await
}

/// Logs what was delivered, and which sinks are not there.
pub async fn follow(watch: watch::Receiver<RelayWatch>) -> Infallible {
    let mut ticks = interval(REPORT_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    let mut before = watch.borrow().counts;
    loop {
        ticks.tick().await;
        let now = watch.borrow().clone();
        let rate = (now.counts.delivered - before.delivered) as f64 / REPORT_EVERY.as_secs_f64();
        if now.counts != before {
            tracing::info!(
                "{}; {}; {} lanes",
                super::told(&now.counts),
                number::rate(rate),
                now.lanes
            );
        }
        for sink in &now.sinks {
            if let Some(reason) = &sink.absence {
                tracing::warn!(
                    "{} cannot take messages: {reason}; {} wait",
                    sink.name,
                    sink.queued
                );
            }
        }
        before = now.counts;
    }
}
