//! A relay for tests: it has all lanes.

use crate::HOUR;
use std::cell::Cell;
use tidegate_core::{
    Message, NewMessage, Outbox, Publish, WorkerId,
    outbox::{
        Aside, ClaimRequest, Gained, Lane, Place, Progress, Reader, SetAside, Settlement, Share,
    },
};
use tidegate_sqlite::Sqlite;

pub struct Relay {
    store: Sqlite,
    lanes: Vec<Gained>,
    read_to: Cell<i64>,
    settled: Cell<i64>,
}

impl Relay {
    pub async fn start(store: &Sqlite) -> Self {
        let relay = WorkerId("a relay".to_owned());
        let (epoch, held, routes) = Default::default();
        let share = Share { relay, epoch, held, routes, lease: HOUR };
        let lanes = store.share_lanes(share).await.unwrap().gained;
        Self { store: store.clone(), lanes, read_to: Cell::new(0), settled: Cell::new(0) }
    }

    /// Publishes so many messages, each with a key of its own.
    pub async fn publish(&self, many: usize) {
        let message = |n| NewMessage {
            topic: "t".to_owned(),
            key: Some(format!("key {n}")),
            payload: b"{}".to_vec(),
            ..NewMessage::default()
        };
        self.store.publish((0..many).map(message).collect()).await.unwrap();
    }

    /// What is behind the last that was settled.
    pub async fn read(&self) -> Vec<Message> {
        let after = self.settled.get();
        let place = |gained: &Gained| Place { lane: gained.lease.lane, after };
        let places = self.lanes.iter().map(place).collect();
        let readers = vec![Reader { places, most: 1_000, ..Reader::default() }];
        let request = ClaimRequest { readers, most_bytes: 1 << 20, ..ClaimRequest::default() };
        let reading = self.store.claim_messages(request).await.unwrap().readings.remove(0);
        self.read_to.set(reading.read_to);
        reading.messages
    }

    pub async fn due(&self) -> Vec<Message> {
        let lanes: Vec<Lane> = self.lanes.iter().map(|gained| gained.lease.lane).collect();
        let request =
            ClaimRequest { lanes, most_due: 1_000, most_bytes: 1 << 20, ..ClaimRequest::default() };
        self.store.claim_messages(request).await.unwrap().due
    }

    pub async fn set_all_aside(&self, messages: &[Message]) {
        let aside = |message: &Message| SetAside {
            lane: message.lane,
            position: message.position,
            topic: message.topic.clone(),
            key: message.key_hash(),
            sink: "a sink".to_owned(),
            aside: Aside::Behind,
        };
        let aside = messages.iter().map(aside).collect();
        self.settle(Settlement { aside, ..Settlement::default() }).await;
    }

    pub async fn done(&self, messages: &[Message]) {
        let done = messages.iter().map(|message| (message.lane, message.position)).collect();
        self.settle(Settlement { done, ..Settlement::default() }).await;
    }

    async fn settle(&self, settlement: Settlement) {
        let cursor = self.read_to.get();
        self.settled.set(cursor);
        let progress = |gained: &Gained| Progress {
            lane: gained.lease.lane,
            fence: gained.lease.fence,
            cursor,
            lags: Vec::new(),
            before: None,
        };
        let lanes = self.lanes.iter().map(progress).collect();
        let settlement = Settlement { lanes, ..settlement };
        assert_eq!(self.store.settle_messages(settlement).await.unwrap().late, []);
    }
}
