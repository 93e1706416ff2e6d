//! The two stores, and the relays that use both alike.

use super::{
    operation::{Fate, New, Operation, Working},
    side::{Behind, SINKS, Seen, Settling, Side, TOPICS},
};
use crate::{
    differential::{both, same},
    harness::{AT_ONCE, LATER},
    outbox::bench::Bench,
};
use tidegate_core::{
    NewMessage,
    outbox::{Aside, LANES, Selection},
};

type Step = Result<(), String>;

pub(super) struct World {
    reference: Side,
    store: Side,
    published: usize,
    /// How often lanes were gained.
    leases: usize,
    relays: [Relay; 3],
    /// Who has the lanes.
    holder: Option<usize>,
    sent: Vec<Settling>,
}

/// What a relay believes.
#[derive(Default)]
struct Relay {
    lease: Option<usize>,
    lasts: bool,
    cursor: usize,
    lags: Vec<Behind>,
}

impl World {
    pub(super) async fn new(reference: Bench, store: Bench) -> Self {
        Self {
            reference: Side::new(reference).await,
            store: Side::new(store).await,
            published: 0,
            leases: 0,
            relays: Default::default(),
            holder: None,
            sent: Vec::new(),
        }
    }

    /// Leaves nothing behind that the next sequence could see.
    pub(super) async fn end(&self) {
        self.store.end(self.relays.len()).await;
    }

    pub(super) async fn step(&mut self, operation: &Operation) -> Step {
        use Operation::*;
        match operation {
            Publish(messages) => self.publish(messages).await?,
            Share { relay, lasts, all_routes } => self.share(*relay, *lasts, *all_routes).await?,
            GiveBack { relay } => self.give_back(*relay).await?,
            Read(working) => self.read(working).await?,
            Due(working) => self.due(working).await?,
            Lag { relay, sink, behind } => self.lag(*relay, *sink, *behind).await?,
            SendAgain { settlement } => self.send_again(*settlement).await?,
            RetryDead { sink } => {
                let which = dead_of(*sink);
                both!(self.retry_dead(which.clone()))?;
            }
            DropDead { sink } => self.drop_dead(*sink).await?,
        }
        both!(self.observe()).map(drop)
    }

    async fn publish(&mut self, messages: &[New]) -> Step {
        let message = |new: &New| NewMessage {
            topic: TOPICS[new.topic].to_owned(),
            key: new.key.map(|key| format!("key {key}")),
            payload: b"{}".to_vec(),
            delay: new.delayed.then_some(LATER),
            ..NewMessage::default()
        };
        let messages: Vec<NewMessage> = messages.iter().map(message).collect();
        self.published = both!(self.publish(messages.clone()))?;
        Ok(())
    }

    async fn share(&mut self, relay: usize, lasts: bool, all_routes: bool) -> Step {
        let held = self.relays[relay].lease;
        let got = both!(self.share(relay, held, lasts, all_routes))?;
        let believes = &mut self.relays[relay];
        believes.lasts = lasts;
        if got.lost > 0 {
            believes.lease = None;
        }
        if got.gained > 0 {
            assert_eq!(got.gained, usize::from(LANES), "nobody else is counted");
            (believes.cursor, believes.lags) = (got.cursor(), got.lags());
            believes.lease = Some(self.leases);
            (self.leases, self.holder) = (self.leases + 1, Some(relay));
        }
        if believes.lease.is_none() {
            both!(self.give_back(relay, None))?; // it would be counted in the sharing
        }
        Ok(())
    }

    async fn give_back(&mut self, relay: usize) -> Step {
        let lease = self.relays[relay].lease.take();
        if self.holder == Some(relay) && lease.is_some() {
            self.holder = None;
        }
        both!(self.give_back(relay, lease))
    }

    async fn read(&mut self, working: &Working) -> Step {
        let Some(relay) = self.believing(working.relay) else { return Ok(()) };
        let lags = relay.lags.clone();
        let lag = working.sink.and_then(|sink| lags.iter().position(|it| it.sink == SINKS[sink]));
        let (of, cursor) = match lag {
            Some(lag) => (Some(lags[lag].sink), lags[lag].cursor),
            None => (None, relay.cursor),
        };
        let lease = relay.lease.unwrap_or_default();
        let seen = both!(self.read(lease, cursor, of, &lags))?;
        let some = &seen[..seen.len().min(working.messages)];
        let all = some.len() == seen.len();
        let read_to = some.last().filter(|_| !all).map_or(self.published, |last| last.message + 1);
        let relay = &mut self.relays[working.relay];
        match lag {
            Some(lag) if all && read_to >= relay.cursor => drop(relay.lags.remove(lag)),
            Some(lag) => relay.lags[lag].cursor = read_to,
            None => relay.cursor = read_to,
        }
        let (cursor, lags) = (relay.cursor, relay.lags.clone());
        let (aside, _) = meet(some, &working.fates);
        let done = Vec::new();
        self.settle(working.relay, Settling { lease, cursor, lags, aside, done }).await
    }

    async fn due(&mut self, working: &Working) -> Step {
        let Some(relay) = self.believing(working.relay) else { return Ok(()) };
        let lease = relay.lease.unwrap_or_default();
        let (cursor, lags) = (relay.cursor, relay.lags.clone());
        let under_way = |name: &usize| working.sink.is_some() && name.is_multiple_of(3);
        let under_way: Vec<usize> = (0..self.published).filter(under_way).collect();
        let (seen, _) = both!(self.due(lease, under_way.clone()))?;
        let some = &seen[..seen.len().min(working.messages)];
        let (aside, done) = meet(some, &working.fates);
        self.settle(working.relay, Settling { lease, cursor, lags, aside, done }).await
    }

    /// A sink falls behind by some messages, or has caught up.
    async fn lag(&mut self, relay: usize, sink: usize, behind: Option<usize>) -> Step {
        let sink = SINKS[sink];
        let Some(believes) = self.believing(relay) else { return Ok(()) };
        let cursor = believes.cursor.saturating_sub(behind.unwrap_or_default());
        believes.lags.retain(|lag| lag.sink != sink);
        believes.lags.extend(behind.map(|_| Behind { sink, cursor }));
        let (cursor, lags) = (believes.cursor, believes.lags.clone());
        let lease = believes.lease.unwrap_or_default();
        let (aside, done) = Default::default();
        self.settle(relay, Settling { lease, cursor, lags, aside, done }).await
    }

    async fn settle(&mut self, relay: usize, settling: Settling) -> Step {
        let (late, _) = both!(self.settle(&settling))?;
        match late {
            0 => self.sent.push(settling),
            _ => self.relays[relay].lease = None,
        }
        Ok(())
    }

    async fn send_again(&mut self, back: usize) -> Step {
        let Some(newest) = self.sent.len().checked_sub(1) else { return Ok(()) };
        let settling = self.sent[newest - back % self.sent.len()].clone();
        both!(self.settle(&settling)).map(drop)
    }

    /// What waits behind goes on when the relay shares again, at the latest.
    async fn drop_dead(&mut self, sink: Option<usize>) -> Step {
        let Some(holder) = self.holder else { return Ok(()) };
        let which = dead_of(sink);
        both!(self.drop_dead(which.clone()))?;
        self.sent.clear(); // nobody sends again what somebody has removed since
        self.share(holder, self.relays[holder].lasts, true).await
    }

    /// A relay that believes to have lanes.
    fn believing(&mut self, relay: usize) -> Option<&mut Relay> {
        Some(&mut self.relays[relay]).filter(|relay| relay.lease.is_some())
    }
}

fn dead_of(sink: Option<usize>) -> Selection {
    let sink = sink.map(|sink| SINKS[sink].to_owned());
    Selection { sink, ..Selection::default() }
}

/// What is set aside, and what is done that was before.
fn meet(messages: &[Seen], fates: &[Fate]) -> (Vec<(usize, String, Aside)>, Vec<usize>) {
    let (mut aside, mut done) = (Vec::new(), Vec::new());
    for (seen, fate) in messages.iter().zip(fates.iter().cycle()) {
        let (attempts, sink) = match &seen.aside {
            Some((attempts, sink, _)) => (attempts + 1, sink.clone()),
            None => (1, SINKS[usize::from(seen.topic == TOPICS[1])].to_owned()),
        };
        let retry = |delay| Aside::Retry { attempts, reason: "no luck".to_owned(), delay };
        let other = SINKS[usize::from(sink == SINKS[0])].to_owned();
        let mut set = |sink, what| aside.push((seen.message, sink, what));
        match fate {
            Fate::Done if seen.aside.is_some() => done.push(seen.message),
            Fate::Done => {}
            Fate::RetryAtOnce => set(sink, retry(AT_ONCE)),
            Fate::RetryLater => set(sink, retry(LATER)),
            Fate::Behind => set(sink, Aside::Behind),
            Fate::Later => set(sink, Aside::Later { delay: LATER }),
            Fate::DueAtOnce => set(sink, Aside::Later { delay: AT_ONCE }),
            Fate::Unrouted => set(String::new(), Aside::Unrouted),
            Fate::Dead(then) => {
                let reason = format!("failed {attempts} times");
                set(sink, Aside::Dead { attempts, reason, then: *then });
            }
            Fate::Elsewhere => set(other, retry(AT_ONCE)),
        }
    }
    (aside, done)
}
