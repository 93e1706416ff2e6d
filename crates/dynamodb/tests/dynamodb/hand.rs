//! A relay by hand: each of its steps when a test wants it.

use crate::fixture::Fixture;
use aws_sdk_dynamodb::types::AttributeValue;
use std::{collections::HashMap, sync::Arc, time::Duration};
use tidegate_core::{
    Message, Outbox, WorkerId,
    outbox::{
        Aside, Claim, ClaimRequest, Epoch, LaneLease, Place, Position, Progress, Reader, Route,
        SetAside, Settled, Settlement, Share,
    },
};
use tidegate_dynamodb::DynamoDb;

pub struct Hand {
    pub store: Arc<DynamoDb>,
    name: String,
    pub lease: Duration,
    epoch: Epoch,
    pub lanes: Vec<LaneLease>,
    settled: u64,
}

impl Hand {
    pub fn new(store: Arc<DynamoDb>, name: &str, lease: Duration) -> Self {
        let (name, epoch) = (name.to_owned(), Epoch::default());
        Self { store, name, lease, epoch, lanes: Vec::new(), settled: 0 }
    }

    /// The same relay, for a step beside another one.
    pub fn twin(&self) -> Self {
        Self {
            store: self.store.clone(),
            name: self.name.clone(),
            lease: self.lease,
            epoch: self.epoch.clone(),
            lanes: self.lanes.clone(),
            settled: self.settled,
        }
    }

    /// One that has all lanes.
    pub async fn start(store: Arc<DynamoDb>) -> Self {
        let mut hand = Self::new(store, "hand", Duration::from_secs(30));
        while hand.lanes.len() < 64 {
            hand.share().await;
        }
        hand
    }

    pub async fn share(&mut self) {
        let share = Share {
            relay: WorkerId(self.name.clone()),
            epoch: self.epoch.clone(),
            held: self.lanes.clone(),
            routes: vec![Route {
                topics: tidegate_core::outbox::Pattern("*".to_owned()),
                sink: "s".to_owned(),
            }],
            lease: self.lease,
        };
        let shared = self.store.share_lanes(share).await.unwrap();
        self.epoch = shared.epoch;
        self.lanes.retain(|lease| !shared.lost.contains(&lease.lane));
        self.lanes.extend(shared.gained.iter().map(|gained| gained.lease));
    }

    pub async fn claim(&self) -> Claim {
        let places = self.lanes.iter().map(|it| Place { lane: it.lane, after: 0 }).collect();
        let request = ClaimRequest {
            epoch: self.epoch.clone(),
            readers: vec![Reader { places, most: 512, ..Reader::default() }],
            lanes: self.lanes.iter().map(|lease| lease.lane).collect(),
            most_due: 100,
            most_bytes: 64 << 20,
            ..ClaimRequest::default()
        };
        self.store.claim_messages(request).await.unwrap()
    }

    /// Reads until so many messages have come.
    pub async fn read(&self, count: usize) -> Vec<Message> {
        let mut messages = Vec::new();
        while messages.len() < count {
            messages.extend(self.claim().await.readings.remove(0).messages);
        }
        messages
    }

    pub async fn settle(&mut self, done: &[&Message], aside: &[(&Message, Aside)]) -> Settled {
        self.settled += 1;
        let progress = |lease: &LaneLease| Progress {
            lane: lease.lane,
            fence: lease.fence,
            cursor: 0,
            lags: Vec::new(),
            before: None,
        };
        let set = |(message, aside): &(&Message, Aside)| SetAside {
            lane: message.lane,
            position: message.position,
            topic: message.topic.clone(),
            key: message.key_hash(),
            sink: "s".to_owned(),
            aside: aside.clone(),
        };
        let settlement = Settlement {
            epoch: self.epoch.clone(),
            number: self.settled,
            lanes: self.lanes.iter().map(progress).collect(),
            aside: aside.iter().map(set).collect(),
            done: done.iter().map(|message| (message.lane, message.position)).collect(),
        };
        self.store.settle_messages(settlement).await.unwrap()
    }

    pub async fn set_aside(&mut self, messages: &[Message], aside: Aside) -> Settled {
        let aside: Vec<_> = messages.iter().map(|message| (message, aside.clone())).collect();
        self.settle(&[], &aside).await
    }

    /// What the store found gone is settled, as a relay does.
    pub async fn settle_gone(&mut self, gone: Vec<(tidegate_core::outbox::Lane, Position)>) {
        self.settled += 1;
        let lanes = self.lanes.iter().map(|lease| Progress {
            lane: lease.lane,
            fence: lease.fence,
            cursor: 0,
            lags: Vec::new(),
            before: None,
        });
        let settlement = Settlement {
            epoch: self.epoch.clone(),
            number: self.settled,
            lanes: lanes.collect(),
            aside: Vec::new(),
            done: gone,
        };
        self.store.settle_messages(settlement).await.unwrap();
    }
}

/// An item as it is.
pub async fn item(fixture: &Fixture, id: &str) -> HashMap<String, AttributeValue> {
    let get = fixture.client().get_item().table_name(fixture.table()).consistent_read(true);
    let get = get.key("MessageId", AttributeValue::S(id.to_owned()));
    get.send().await.unwrap().item.unwrap_or_default()
}

/// Changes an item, as another program does.
pub async fn update(fixture: &Fixture, id: &str, expression: &str) {
    let update = fixture.client().update_item().table_name(fixture.table());
    let update = update.key("MessageId", AttributeValue::S(id.to_owned()));
    update.update_expression(expression).send().await.unwrap();
}

/// As Brighter replays a message.
pub async fn replay(fixture: &Fixture, id: &str) {
    let expression = "SET OutstandingCreatedTime = CreatedTime REMOVE DeliveryTime, DeliveredAt";
    update(fixture, id, expression).await;
}
