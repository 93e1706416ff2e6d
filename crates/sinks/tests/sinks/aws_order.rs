//! Order per key in SQS and SNS, under random answers.

use crate::aws_stub::{Bodies, Say, Stub};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};
use tidegate_core::sink::{Delivery, Item, Outcome, Sink, Verdict};

const KEYS: u64 = 4;
const ITEMS: u64 = 24;

/// A service that decides about each message, and about each call, by chance.
#[derive(Default)]
struct Moody {
    dice: u64,
    /// What the sender knows to be done.
    done: BTreeSet<u64>,
    /// What the service has said to be done, in an answer that arrives.
    said: BTreeSet<u64>,
    /// What it has taken, whether or not anybody was told.
    stored: Vec<u64>,
    /// What was sent although one before it with the same key was not known to be done.
    overtaken: Vec<(u64, u64)>,
}

impl Moody {
    fn roll(&mut self, sides: u64) -> u64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.dice >> 33) % sides
    }

    fn answer(&mut self, bodies: &Bodies) -> Say {
        let numbers: Vec<u64> = bodies.iter().map(|body| body.parse().unwrap()).collect();
        assert!((1..=10).contains(&numbers.len()));
        for number in &numbers {
            let before = (0..*number).filter(|other| other % KEYS == number % KEYS);
            // Within a delivery the sender knows more than the test does.
            let first = before.into_iter().find(|it| !self.said.contains(it));
            self.overtaken.extend(first.map(|it| (it, *number)));
        }
        match self.roll(12) {
            0 => return Say::All(400, "ThrottlingException"),
            1 => return Say::All(503, "ServiceUnavailable"),
            2 => return Say::All(400, "InvalidParameterValue").filter(numbers.len() > 1),
            3 => {
                // All are stored, and nobody is told.
                self.stored.extend(&numbers);
                return Say::Lost;
            }
            _ => {}
        }
        let fates = numbers.iter().map(|number| match self.roll(10) {
            0 => Some(("InternalError", false)),
            1 => Some(("RequestThrottled", true)),
            2 => Some(("SomethingElse", true)),
            _ => {
                self.stored.push(*number);
                self.said.insert(*number);
                None
            }
        });
        Say::Each(fates.collect())
    }
}

impl Say {
    /// It, or a throttle: alone, a message would be dead.
    fn filter(self, keep: bool) -> Self {
        if keep { self } else { Self::All(400, "ThrottlingException") }
    }
}

/// Sends everything that is not done, again and again, until all is. As a relay does, with at most one
/// message of each key in a delivery, or with as many as there are.
async fn send_all(sink: &dyn Sink, service: &Mutex<Moody>, one_per_key: bool) {
    let texts: Vec<(String, String)> =
        (0..ITEMS).map(|n| (n.to_string(), format!("k{}", n % KEYS))).collect();
    for _ in 0..2_000 {
        let mut open: Vec<u64> = {
            let service = service.lock().unwrap();
            (0..ITEMS).filter(|n| !service.done.contains(n)).collect()
        };
        if open.is_empty() {
            return;
        }
        if one_per_key {
            let mut keys = BTreeSet::new();
            open.retain(|n| keys.insert(n % KEYS));
        }
        let item = |n: &u64| {
            let (id, key) = &texts[*n as usize];
            Item { topic: "t", key: Some(key), ..Item::record(id, id) }
        };
        let items: Vec<Item<'_>> = open.iter().map(item).collect();
        let answer = sink.deliver(Delivery { connection: 0, items: &items }).await;
        if let Outcome::Answered(verdicts) = answer.outcome {
            assert_eq!(verdicts.len(), items.len());
            let mut service = service.lock().unwrap();
            for (n, verdict) in open.iter().zip(verdicts) {
                if verdict == Verdict::Done {
                    assert!(service.said.contains(n), "nobody said that {n} is done");
                    service.done.insert(*n);
                }
            }
        }
    }
    panic!("it never ends");
}

#[tokio::test]
async fn no_message_is_sent_before_what_it_follows_is_known_to_be_done() {
    for seed in 0..20 {
        for which in 0..4 {
            let service = Arc::new(Mutex::new(Moody { dice: seed, ..Moody::default() }));
            let moody = Arc::clone(&service);
            let stub = Stub::start(move |bodies| moody.lock().unwrap().answer(bodies)).await;
            let [sqs, sns] = stub.both("");
            let sink = if which < 2 { sqs } else { sns };
            assert!(sink.one_per_key());
            send_all(&*sink, &service, which % 2 == 0).await;
            let service = service.lock().unwrap();
            assert_eq!(service.overtaken, [], "seed {seed}, {which}");
            for key in 0..KEYS {
                let mut first: Vec<u64> = Vec::new();
                for n in service.stored.iter().filter(|n| *n % KEYS == key) {
                    if !first.contains(n) {
                        first.push(*n);
                    }
                }
                assert!(first.is_sorted(), "seed {seed}, {which}: {first:?}");
            }
        }
    }
}
