//! Which destinations of a sink get something now, and which hold up the others.

use super::{FLUSH, Work};
use crate::{
    deliver::{Channel, Destinations},
    relay::{
        group::Group,
        places::Shut,
        reading::{MAX_QUEUED, MAX_QUEUED_BYTES, PATIENCE},
    },
};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};
use tokio::time::Instant;

/// So much is kept for a destination that is slow, so that it always has something to do.
const KEPT: usize = MAX_QUEUED / 16;

/// The ways to the destinations of a sink, while groups are handed out.
pub(super) struct Ways<'a> {
    destinations: &'a Destinations,
    /// Those that were looked at.
    known: HashMap<String, Way>,
    /// How many groups are on their way, by destination.
    sending: HashMap<String, usize>,
    total: usize,
    /// … to destinations that are not known to be there.
    suspect: usize,
    /// When one of those that get nothing now may get something.
    pub try_at: Option<Instant>,
}

struct Way {
    channel: Arc<Channel>,
    limit: usize,
    most: usize,
    sending: usize,
    is_suspect: bool,
}

impl<'a> Ways<'a> {
    pub fn new(destinations: &'a Destinations, groups: &[Arc<Group>]) -> Self {
        let mut sending: HashMap<String, usize> = HashMap::new();
        groups.iter().for_each(|group| *sending.entry(group.place.clone()).or_default() += 1);
        let is_absent = |place: &str| destinations.channel(place).absence().is_some();
        let is_suspect = |place: &str| !place.is_empty() && is_absent(place);
        let suspect = sending.iter().filter(|(place, _)| is_suspect(place)).map(|(_, it)| it).sum();
        let (known, total) = (HashMap::new(), groups.len());
        Self { destinations, known, sending, total, suspect, try_at: None }
    }

    /// How many messages a destination may get now, if any. While one of several is not there, it gets one
    /// group when its time has come: what waits for it is to hold no place that others need.
    pub fn room(&mut self, place: &str) -> Option<usize> {
        let way = match self.known.get(place) {
            Some(way) => way,
            None => {
                let way = self.look(place)?;
                self.known.entry(place.to_owned()).or_insert(way)
            }
        };
        let few = self.suspect < (self.destinations.most / 4).max(1);
        let is_free = way.sending < way.limit && self.total < self.destinations.most;
        (is_free && (!way.is_suspect || few)).then_some(way.most)
    }

    fn look(&mut self, place: &str) -> Option<Way> {
        let channel = self.destinations.channel(place);
        let is_suspect = !place.is_empty() && channel.absence().is_some();
        if is_suspect {
            let wait = channel.until()?.saturating_sub(channel.clock.time());
            if !wait.is_zero() {
                let at = Instant::now() + wait;
                self.try_at = Some(self.try_at.map_or(at, |earlier| earlier.min(at)));
                return None;
            }
        }
        let limit = if is_suspect { 1 } else { channel.limit() };
        let most = channel.size().get();
        let sending = self.sending.get(place).copied().unwrap_or(0);
        Some(Way { channel, limit, most, sending, is_suspect })
    }

    /// A group goes to a destination.
    pub fn take(&mut self, place: &str) -> Arc<Channel> {
        self.total += 1;
        match self.known.get_mut(place) {
            Some(way) => {
                way.sending += 1;
                self.suspect += usize::from(way.is_suspect);
                way.channel.clone()
            }
            None => self.destinations.channel(place),
        }
    }
}

impl Work<'_> {
    /// Sets aside what waits for destinations that hold up others of their sink.
    pub(super) fn clear_places(&mut self, now: Instant) {
        for sink in 0..self.relay.channels.len() {
            let destinations = &self.relay.channels[sink];
            if destinations.count() < 2 {
                continue;
            }
            let used: HashSet<&str> =
                self.sending[sink].iter().map(|group| group.place.as_str()).collect();
            let (queue, shut) = (&self.flow.queues[sink], &self.flow.shut[sink]);
            destinations
                .forget(|it| used.contains(it) || queue.ready_at(it) > 0 || shut.contains_key(it));
            self.shut_places(sink, now);
            let shut = self.flow.shut[sink].iter();
            let shut: Vec<(String, bool)> =
                shut.map(|(place, it)| (place.clone(), it.absent_for.is_zero())).collect();
            for (place, is_there) in shut {
                self.flow.clear_place(sink, &place, if is_there { KEPT } else { 0 });
                self.settle_by(now + FLUSH);
            }
        }
    }

    /// Finds out which destinations of a sink hold up others.
    fn shut_places(&mut self, sink: usize, now: Instant) {
        let destinations = &self.relay.channels[sink];
        let waits = self.waits(sink, now);
        let is_stuck = |place: &str| waits.get(place).is_some_and(|wait| *wait > PATIENCE);
        if !destinations.answers(|place| !is_stuck(place)) {
            // It is the sink itself: nobody gains if something is set aside.
            return self.flow.shut[sink].clear();
        }
        let (messages, bytes) = self.flow.queues[sink].load();
        let open = self.flow.lanes.values().map(|lane| lane.open_at(sink)).sum::<usize>();
        let is_pressed =
            messages >= MAX_QUEUED / 4 || bytes >= MAX_QUEUED_BYTES / 4 || open >= MAX_QUEUED;
        let mut shut = std::mem::take(&mut self.flow.shut[sink]);
        for (place, channel) in destinations.all().into_iter().filter(|(it, _)| !it.is_empty()) {
            let absence = channel.absence();
            let stays = shut.contains_key(&place) && (absence.is_some() || is_stuck(&place));
            if !(stays || is_pressed && is_stuck(&place)) {
                shut.remove(&place);
                continue;
            }
            let name = &self.relay.plan.sinks[sink].name;
            let known = shut.entry(place.clone()).or_insert_with(|| {
                tracing::info!("{name}: {} is slow; others no longer wait for it", escaped(&place));
                Shut::default()
            });
            let slow = || "its destination is slow".to_owned();
            known.reason = absence.map_or_else(slow, |(reason, _)| reason);
            known.absent_for = channel.absent_for().unwrap_or_default();
            if !known.absent_for.is_zero() && !std::mem::replace(&mut known.recalled, true) {
                channel.recall.send_modify(|times| *times += 1);
            }
        }
        self.flow.shut[sink] = shut;
    }

    /// How long the oldest message has waited, by destination.
    fn waits(&self, sink: usize, now: Instant) -> HashMap<String, Duration> {
        let queue = &self.flow.queues[sink];
        let ready = queue.places().filter_map(|place| Some((place, queue.since(place)?)));
        let sending = self.sending[sink].iter().map(|group| (&group.place, group.since));
        let mut waits: HashMap<String, Duration> = HashMap::new();
        for (place, since) in ready.chain(sending) {
            let wait = waits.entry(place.clone()).or_default();
            *wait = (*wait).max(now - since);
        }
        waits
    }
}

/// For the log, whatever is in it.
fn escaped(place: &str) -> String {
    place.chars().take(100).flat_map(char::escape_debug).collect()
}
