//! What is watched while a relay works.

use crate::show::number;
use std::{
    cell::OnceCell, collections::BTreeSet, convert::Infallible, future::pending, time::Duration,
};
use tidegate::{
    Stop,
    relay::{RelayWatch, SinkWatch},
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
    pub async fn watch(&self, mut watch: watch::Receiver<RelayWatch>, stop: &Stop) -> Infallible {
        let Some(most) = self.most else { return pending().await };
        loop {
            let before = watch.borrow_and_update().counts;
            let moved = timeout(most, watch.wait_for(|now| now.counts != before)).await;
            match moved.map(|moved| moved.is_ok()) {
                Ok(true) => continue,
                // It has ended.
                Ok(false) => {}
                Err(_) => {
                    let _ = self.given_up.set(gave_up(most, &watch.borrow()));
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

fn gave_up(after: Duration, watch: &RelayWatch) -> String {
    let begin = format!("gave up: nothing was delivered for {}", number::span(after));
    let why = watch.sinks.iter().filter_map(absence);
    [begin].into_iter().chain(why).collect::<Vec<_>>().join("; ")
}

fn absence(sink: &SinkWatch) -> Option<String> {
    let reason = sink.absence.as_ref()?;
    Some(format!("{} cannot take messages: {reason}", sink.name))
}

/// Says at once which sinks cannot take messages, and when they can again.
pub async fn tell_absences(watch: watch::Receiver<RelayWatch>) -> Infallible {
    let mut absent = BTreeSet::new();
    loop {
        tokio::time::sleep(LOOK).await;
        for sink in &watch.borrow().sinks {
            match absence(sink) {
                Some(line) if absent.insert(sink.name.clone()) => {
                    tracing::warn!("{line}; they wait, and it is tried again");
                }
                None if absent.remove(&sink.name) => {
                    tracing::info!("{} takes messages again", sink.name);
                }
                _ => {}
            }
        }
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
