//! Looking for messages: at once while there are some, seldom while there are none.

use super::{Event, FLUSH, IDLE_FLUSH, RelayError, SHORTEST_POLL, Work};
use crate::{deliver::Destinations, relay::reading::Asked};
use std::time::Duration;
use tidegate_core::{Kind, StoreError, outbox::Claim};
use tokio::time::Instant;

/// A message that was published a moment ago is decided a moment later.
const HELD_BACK: Duration = Duration::from_millis(3);

/// A drain that waits for longer says so.
const WAITS_LONG: Duration = Duration::from_secs(5);

/// A transaction that holds messages back for longer is named.
const HELD_BACK_LONG: Duration = Duration::from_secs(5);

/// … and again after this.
const NAMED_AGAIN: Duration = Duration::from_secs(60);

impl Work<'_> {
    pub(super) fn claim(&mut self) {
        let now = Instant::now();
        if self.look.looking || now < self.look.next {
            return;
        }
        self.flow.gone = self.relay.channels.iter().map(Destinations::is_gone).collect();
        self.clear_places(now);
        let waits: Vec<Duration> =
            (0..self.sending.len()).map(|sink| self.wait(sink, now)).collect();
        let Some((request, asked)) = self.flow.ask(&waits) else {
            // There is no room: what comes back makes some.
            self.look.next = now + SHORTEST_POLL;
            return;
        };
        (self.look.looking, self.look.missed) = (true, false);
        let store = self.relay.store.clone();
        self.events
            .spawn(async move { Event::Claimed(store.claim_messages(request).await, asked) });
    }

    /// How long the oldest message for a sink has waited.
    pub(super) fn wait(&self, sink: usize, now: Instant) -> Duration {
        let sending = self.sending[sink].iter().map(|group| now - group.since).max();
        sending.unwrap_or_default().max(self.flow.queues[sink].oldest(now))
    }

    pub(super) fn claimed(
        &mut self,
        answer: Result<Claim, StoreError>,
        asked: &Asked,
        now: Instant,
    ) -> Result<(), RelayError> {
        self.look.looking = false;
        let claim = match answer {
            Ok(claim) => claim,
            Err(error) if error.kind() == Kind::WentBack => {
                self.went_back(&asked.epoch, &error, now);
                return Ok(());
            }
            Err(error) if error.is_passing() => {
                let pause = self.look.backoff.pause();
                tracing::warn!("{error}; trying again in {pause:.0?}");
                self.look.next = now + pause;
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        self.look.backoff.reset();
        let found = !claim.due.is_empty()
            || claim.readings.iter().any(|it| it.more || !it.messages.is_empty());
        let nothing = asked.whole && !found && !claim.held_back && claim.next_due.is_none();
        self.look.nothing_left = nothing && !self.look.missed;
        let options = &self.relay.options;
        self.look.pause = match found {
            true => SHORTEST_POLL,
            // The end need not wait for one more look.
            false if self.look.nothing_left && options.drain => options.poll,
            false => (self.look.pause * 2).min(options.poll),
        };
        let pause = match (found, claim.held_back) {
            (true, _) => Duration::ZERO,
            (false, true) => self.held_back(now),
            (false, false) => self.look.pause,
        };
        self.look.next = now + claim.next_due.map_or(pause, |due| due.min(pause));
        self.name_holder(claim.held_back && !found, now);
        if !found {
            self.tell_wait(claim.next_due);
        }
        self.flow.claimed(claim, asked, now);
        let news = if self.flow.aside.is_empty() { IDLE_FLUSH } else { FLUSH };
        self.settle_by(now + news);
        if found {
            // Read on while what was found is being sent.
            self.claim();
        }
        Ok(())
    }

    /// A transaction is often over when it is seen, or in a moment, but not one that is open for long
    /// already.
    fn held_back(&self, now: Instant) -> Duration {
        let Some(since) = self.look.held_back_since else { return Duration::ZERO };
        ((now - since) / 8).clamp(HELD_BACK, self.relay.options.poll.max(HELD_BACK))
    }

    /// Says once that a drain waits for what is not due for long.
    fn tell_wait(&mut self, next_due: Option<Duration>) {
        let long = next_due.filter(|due| *due > WAITS_LONG);
        let Some(due) = long.filter(|_| self.relay.options.drain && self.flow.is_at_rest()) else {
            return;
        };
        if !std::mem::replace(&mut self.look.wait_told, true) {
            let seconds = due.as_secs();
            tracing::info!("what is left is not due yet: the next message is in {seconds} s");
        }
    }

    /// Says once which transaction keeps messages from being read, if one does for long.
    pub(super) fn name_holder(&mut self, held_back: bool, now: Instant) {
        let since = match (held_back, self.look.held_back_since) {
            (false, _) => {
                self.look.held_back_since = None;
                return;
            }
            (true, None) => {
                self.look.held_back_since = Some(now);
                return;
            }
            (true, Some(since)) => since,
        };
        let named = self.look.holder_named.is_some_and(|at| now - at < NAMED_AGAIN);
        if now - since < HELD_BACK_LONG || named {
            return;
        }
        self.look.holder_named = Some(now);
        let store = self.relay.store.clone();
        self.events.spawn(async move {
            if let Ok(status) = store.outbox().await
                && let Some(holder) = status.holder
            {
                let age = holder.age.as_secs();
                tracing::warn!("{} holds messages back: it has been open for {age} s", holder.name);
            }
            Event::Done
        });
    }
}
