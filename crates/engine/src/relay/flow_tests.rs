//! What a relay knows, step by step: races that a whole relay shows only by chance.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::{flow::Flow, plan::Plan, tests::two_sinks};
use std::{sync::Arc, time::Duration};
use tidegate_core::{
    Fence, Headers, Message, MessageId,
    outbox::{Claim, Gained, Lag, Lane, LaneLease, Origin, Reading, Shared, Topics},
};

const AT_ONCE: [Duration; 2] = [Duration::ZERO; 2];

fn gained(lane: u16, lags: Vec<Lag>) -> Gained {
    let lease = LaneLease { lane: Lane(lane), fence: Fence(1) };
    Gained { lease, cursor: 0, lags, held: Vec::new(), aside: Vec::new() }
}

fn flow(plan: &Plan, lanes: &[u16]) -> Flow {
    let mut flow = Flow::new(Arc::new(plan.clone()));
    let gained = lanes.iter().map(|lane| gained(*lane, Vec::new())).collect();
    flow.shared(Shared { gained, relays: 1, ..Shared::default() });
    flow
}

fn message(id: i64, lane: u16, topic: &str) -> Message {
    Message {
        id: MessageId(id),
        name: id.to_string(),
        lane: Lane(lane),
        topic: topic.to_owned(),
        key: None,
        headers: Headers::new(),
        payload: b"1".to_vec(),
        published_ms: 0,
        origin: Origin::Lane { due_in: None },
    }
}

fn read(messages: Vec<Message>, read_to: i64) -> Claim {
    let reading = Reading { messages, read_to, more: false };
    Claim { readings: vec![reading], ..Claim::default() }
}

#[test]
fn a_lane_that_will_be_given_back_is_not_passed_over() {
    let plan = two_sinks();
    let mut flow = flow(&plan, &[1, 2]);
    flow.shared(Shared { surplus: 1, relays: 2, ..Shared::default() });
    let asking = flow.ask(&AT_ONCE).unwrap();
    let lanes: Vec<Lane> = asking.request.readers[0].places.iter().map(|it| it.lane).collect();
    assert_eq!(lanes, [Lane(1)]);
    flow.claimed(read(Vec::new(), 100), &asking.lines, &asking.lanes);
    let settlement = flow.settlement().unwrap();
    let moved: Vec<(Lane, i64)> = settlement.lanes.iter().map(|it| (it.lane, it.cursor)).collect();
    assert_eq!(moved, [(Lane(1), 100)], "nothing was read from the other one");
}

#[test]
fn what_is_read_apart_since_it_was_asked_for_is_read_once() {
    let plan = two_sinks();
    let mut flow = flow(&plan, &[1]);
    let asking = flow.ask(&AT_ONCE).unwrap();
    // Meanwhile a lane comes in whose sink `slow` lags.
    let topics = Topics::of_sink(&plan.routes, "slow");
    let lag = Lag { sink: "slow".to_owned(), topics, cursor: 0 };
    flow.shared(Shared { gained: vec![gained(2, vec![lag])], relays: 1, ..Shared::default() });
    let messages = vec![message(5, 1, "slow.x"), message(6, 1, "fast")];
    flow.claimed(read(messages, 10), &asking.lines, &asking.lanes);
    assert_eq!([flow.queues[0].load().0, flow.queues[1].load().0], [0, 1]);
    let asking = flow.ask(&AT_ONCE).unwrap();
    let lag = asking.request.readers.iter().find(|reader| reader.name == "slow").unwrap();
    assert!(lag.places.iter().all(|place| place.after == 0), "it is still to be read");
}
