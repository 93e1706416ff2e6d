//! Reading lanes: oldest first across topics and lanes, within limits, and nothing twice.

use super::{
    bench::Bench,
    relay::{Relay, advance, ids, new_message, positions},
};
use tidegate_core::{
    Headers, MessageId, NewMessage, Position,
    outbox::{Place, Reader, Route, Topics},
};

const TOPICS: [&str; 3] = ["orders.eu", "orders.us", "mail"];

/// Thirty messages, on three topics in turn, with seven keys and without.
async fn publish_thirty(bench: &Bench) -> Vec<MessageId> {
    const KEYS: [Option<&str>; 8] =
        [Some("a"), Some("b"), Some("c"), None, Some("d"), Some("e"), Some("f"), Some("g")];
    let message = |n: usize| new_message(TOPICS[n % 3], KEYS[n % 8]);
    bench.publish((0..30).map(message).collect()).await
}

fn topics(pattern: &str) -> Topics {
    Topics::of_sink(&[super::relay::route(pattern, "s")], "s")
}

pub(crate) async fn messages_are_read_in_order_and_reading_changes_nothing(bench: Bench) {
    let published = publish_thirty(&bench).await;
    let relay = Relay::start(&bench, "a").await;
    for _ in 0..2 {
        assert_eq!(ids(&relay.read().await), published);
    }
    let more = publish_thirty(&bench).await;
    assert_eq!(ids(&relay.read().await), [published, more].concat());
}

pub(crate) async fn only_what_is_behind_a_place_is_read(bench: Bench) {
    publish_thirty(&bench).await;
    let relay = Relay::start(&bench, "a").await;
    let all = relay.read().await;
    let mut reader = relay.reader();
    // Each lane from another message on, and some lanes not at all.
    let after = |place: &Place| all[usize::from(place.lane.0) % 30].position.0;
    reader.places.iter_mut().for_each(|place| place.after = after(place));
    reader.places.retain(|place| place.lane.0 % 3 != 0);
    let wanted = |message: &&tidegate_core::Message| {
        let place = reader.places.iter().find(|place| place.lane == message.lane);
        place.is_some_and(|place| message.position.0 > place.after)
    };
    let expected: Vec<MessageId> =
        all.iter().filter(wanted).map(|message| message.id.clone()).collect();
    assert_eq!(ids(&relay.read_with(reader.clone()).await), expected);
    reader.places.clear();
    assert_eq!(relay.read_with(reader).await, [], "without a lane there is nothing");
}

pub(crate) async fn a_reader_takes_some_topics_and_leaves_others(bench: Bench) {
    publish_thirty(&bench).await;
    let relay = Relay::start(&bench, "a").await;
    let all = relay.read().await;
    let excepted = Topics::of_sink(
        &[
            Route { topics: tidegate_core::outbox::Pattern("*.us".into()), sink: "other".into() },
            Route { topics: tidegate_core::outbox::Pattern("*".into()), sink: "s".into() },
        ],
        "s",
    );
    let choices: [(Option<Topics>, Vec<Topics>); 8] = [
        (None, Vec::new()),
        (Some(topics("orders.*")), Vec::new()),
        (Some(topics("mail")), Vec::new()),
        (Some(topics("nothing")), Vec::new()),
        (None, vec![topics("orders.eu")]),
        (None, vec![topics("mail"), topics("*.us")]),
        (Some(topics("orders.*")), vec![topics("*.us")]),
        (Some(excepted), Vec::new()),
    ];
    for (takes, leaves) in choices {
        let reader = Reader { takes, leaves, ..relay.reader() };
        let wanted = all.iter().filter(|message| reader.wants(&message.topic));
        let expected: Vec<MessageId> = wanted.map(|message| message.id.clone()).collect();
        assert_eq!(ids(&relay.read_with(reader.clone()).await), expected, "{reader:?}");
    }
}

pub(crate) async fn patterns_mean_their_characters(bench: Bench) {
    let names = ["a.b", "axb", "a?b", "a[x]b", "a\\b", "A.B", "a.b.c", "a+b", "a{1}", "a|b", "ä.b"];
    bench.publish(names.iter().map(|topic| new_message(topic, None)).collect()).await;
    let relay = Relay::start(&bench, "a").await;
    for pattern in names.into_iter().chain(["a*", "*b", "a*b", "*.*", "a[*]b", "*?*", "*"]) {
        let reader = Reader { takes: Some(topics(pattern)), ..relay.reader() };
        let expected: Vec<&str> = names.into_iter().filter(|topic| reader.wants(topic)).collect();
        let read = relay.read_with(reader).await;
        let read: Vec<&str> = read.iter().map(|message| message.topic.as_str()).collect();
        assert_eq!(read, expected, "{pattern}");
    }
}

pub(crate) async fn a_reading_is_limited_by_count(bench: Bench) {
    let published = publish_thirty(&bench).await;
    let relay = Relay::start(&bench, "a").await;
    for most in [1, 2, 7, 29, 30] {
        let reader = Reader { most, ..relay.reader() };
        assert_eq!(ids(&relay.read_with(reader).await), published, "by {most}");
    }
    let none = Reader { most: 0, ..relay.reader() };
    let claim = relay.ask_decided(&relay.asking(vec![none])).await;
    assert_eq!(claim.readings[0].messages, []);
    let first = relay.read().await[0].position;
    assert!(claim.readings[0].read_to < first.0 && claim.readings[0].more);
}

pub(crate) async fn a_reading_is_limited_by_bytes(bench: Bench) {
    let headers = Headers::from_iter([("content-type", "text/plain")]);
    let sized = |bytes| NewMessage {
        payload: vec![b'x'; bytes],
        headers: headers.clone(),
        ..new_message("t", "k")
    };
    let published = bench.publish([10, 0, 90, 500, 1, 99].map(sized).to_vec()).await;
    let relay = Relay::start(&bench, "a").await;
    let mut reader = relay.reader();
    let mut readings = Vec::new();
    loop {
        let reading = relay.read_once(reader.clone(), 100).await;
        readings.extend(ids(&reading.messages).chunks(6).map(<[MessageId]>::to_vec));
        if !reading.more {
            break;
        }
        advance(&mut reader, reading.read_to);
    }
    assert_eq!(readings.concat(), published);
    for reading in &readings {
        let bytes = |id: &MessageId| {
            [10, 0, 90, 500, 1, 99][published.iter().position(|p| p == id).expect("published")]
        };
        assert!(
            reading.iter().map(bytes).sum::<usize>() <= 100 || reading.len() == 1,
            "{readings:?}"
        );
    }
    assert!(
        readings.contains(&vec![published[3].clone()]),
        "one message may have more: {readings:?}"
    );
}

pub(crate) async fn read_to_covers_lanes_without_messages(bench: Bench) {
    let relay = Relay::start(&bench, "a").await;
    let reading = relay.read_once(relay.reader(), 1 << 20).await;
    assert!(reading.messages.is_empty() && !reading.more);
    bench.publish_keys("t", ["one", "one"]).await;
    let reading = relay.read_once(relay.reader(), 1 << 20).await;
    assert_eq!(reading.messages.len(), 2);
    let last = reading.messages[1].position;
    assert!(reading.read_to >= last.0 && !reading.more, "{reading:?}");
    let lane = reading.messages[0].lane;
    let elsewhere = |place: &Place| place.lane != lane;
    let places = relay.reader().places.into_iter().filter(elsewhere).collect();
    let reading = relay.read_once(Reader { places, ..relay.reader() }, 1 << 20).await;
    assert!(reading.messages.is_empty() && reading.read_to >= last.0, "{reading:?}");
    bench.publish_keys("t", ["two"]).await;
    let next = relay.read().await[2].position;
    assert!(next.0 > reading.read_to, "nothing comes up to where it was read");
}

pub(crate) async fn readers_do_not_mind_each_other(bench: Bench) {
    publish_thirty(&bench).await;
    let relay = Relay::start(&bench, "a").await;
    let published = positions(&relay.read().await);
    let fast = Reader { leaves: vec![topics("mail")], ..relay.reader() };
    let after = published[10].0;
    let places = relay.reader().places.into_iter().map(|place| Place { after, ..place }).collect();
    let takes = Some(topics("mail"));
    let slow = Reader { name: "slow".to_owned(), takes, places, most: 3, ..Reader::default() };
    let request = relay.asking(vec![fast.clone(), slow.clone()]);
    let claim = relay.ask_decided(&request).await;
    assert_eq!(claim.readings.len(), 2);
    assert!(claim.readings[0].messages.iter().all(|message| message.topic != "mail"));
    assert!(claim.readings[1].messages.iter().all(|message| message.topic == "mail"));
    let mail = published.iter().copied().skip(2).step_by(3);
    let behind: Vec<Position> = mail.filter(|id| id.0 > after).collect();
    assert_eq!(positions(&relay.read_with(slow).await), behind);
    assert_eq!(relay.read_with(fast).await.len(), 20);
}
