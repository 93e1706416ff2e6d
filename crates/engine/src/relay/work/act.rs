//! Groups go to their sinks.

use super::{Event, FLUSH, Work, places::Ways};
use crate::{
    Stop,
    deliver::{Channel, Scene, send},
    relay::{group::Group, queue::Queued},
};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};
use tidegate_core::sink::Item;
use tokio::{sync::watch, time::Instant};

impl Work<'_> {
    pub(super) fn send(&mut self) {
        self.try_at = None;
        for sink in 0..self.relay.channels.len() {
            if !self.flow.queues[sink].has_ready() {
                continue;
            }
            let mut ways = Ways::new(&self.relay.channels[sink], &self.sending[sink]);
            while let Some(group) = self.flow.next_group(sink, |place| ways.room(place)) {
                let channel = ways.take(&group.place);
                let group = Arc::new(group);
                self.sending[sink].push(group.clone());
                let scene = Sending {
                    stop: self.stop.clone(),
                    recalled: self.lanes.recalled.subscribe(),
                    place_recalled: channel.recall.subscribe(),
                    until: self.lanes.until.subscribe(),
                    in_flight: self.in_flight.clone(),
                };
                self.in_flight.fetch_add(1, Relaxed);
                self.events.spawn(deliver(channel, scene, group));
            }
            self.try_at = self.try_at.into_iter().chain(ways.try_at).min();
        }
    }

    pub(super) fn sent(&mut self, group: Arc<Group>, now: Instant) {
        self.sending[group.sink].retain(|sending| !Arc::ptr_eq(sending, &group));
        self.answered(group);
        let is_last = self.flow.queues.iter().all(|queue| queue.load().0 == 0);
        self.settle_by(if is_last { now } else { now + FLUSH });
    }

    /// Takes in what is known about a group that nobody works on any more.
    pub(super) fn answered(&mut self, group: Arc<Group>) {
        if let Some(group) = Arc::into_inner(group) {
            let verdicts = group.verdicts.take();
            self.flow.answered(group, verdicts);
        }
    }
}

/// What else is known while a group is sent.
pub(super) struct Sending {
    stop: Stop,
    recalled: watch::Receiver<u64>,
    /// The same for groups to one destination.
    place_recalled: watch::Receiver<u64>,
    /// The lease of the lanes.
    until: watch::Receiver<Instant>,
    in_flight: Arc<AtomicUsize>,
}

impl Scene for Sending {
    fn closed(&self) -> impl Future<Output = ()> + Send {
        let (mut recalled, mut place) = (self.recalled.clone(), self.place_recalled.clone());
        async move {
            tokio::select! {
                () = self.stop.stopped() => {}
                _ = recalled.changed() => {}
                _ = place.changed() => {}
            }
        }
    }

    fn may_send(&self) -> bool {
        Instant::now() <= *self.until.borrow()
    }

    fn is_alone(&self) -> bool {
        self.in_flight.load(Relaxed) <= 1
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.in_flight.fetch_sub(1, Relaxed);
    }
}

async fn deliver(channel: Arc<Channel>, scene: Sending, group: Arc<Group>) -> Event {
    let items: Vec<Item<'_>> = group.messages.iter().map(Queued::item).collect();
    // What ends a load is waited for by a relay: there is no other error.
    let _ = send(&channel, &scene, &items, &group.verdicts).await;
    drop(items);
    Event::Sent(group)
}
