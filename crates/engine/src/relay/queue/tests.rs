use super::*;
use tidegate_core::{Headers, MessageId, outbox::Origin};

fn queued(id: i64, key: Option<i64>, topic: &str) -> Queued {
    let message = Message {
        id: MessageId::number(id),
        position: Position(id),
        name: id.to_string(),
        lane: Lane(0),
        topic: topic.to_owned(),
        key: key.map(|key| key.to_string()),
        headers: Headers::new(),
        payload: vec![0; 10],
        published_ms: 0,
        origin: Origin::Lane { due_in: None },
        damage: None,
    };
    let (line, fence, since) = (0, Fence(1), Instant::now());
    let (key, place) = (key.map(KeyHash), topic.to_owned());
    Queued { message, line, fence, key, place, aside: None, single: false, since }
}

/// Ten messages, of two keys in turns, and every fifth of none.
fn queue(mixes: bool) -> Queue {
    let mut queue = Queue::new(false);
    for id in 1..=10 {
        let key = (id % 5 != 0).then_some(id % 2);
        let queued = queued(id, key, if id % 3 == 0 { "third" } else { "t" });
        let place = if mixes { String::new() } else { queued.place.clone() };
        queue.push(Queued { place, ..queued });
    }
    queue
}

fn ids(group: &[Queued]) -> Vec<i64> {
    group.iter().map(|queued| queued.position().0).collect()
}

fn take(queue: &mut Queue, messages: usize) -> Vec<Queued> {
    take_coalesced(queue, messages, |_| false)
}

fn take_coalesced(
    queue: &mut Queue,
    messages: usize,
    coalesces: impl Fn(&Queued) -> bool,
) -> Vec<Queued> {
    let Some((place, most)) = queue.choose(|_| Some(messages)) else { return Vec::new() };
    queue.take(&place, Fit { messages: most, bytes: usize::MAX }, coalesces)
}

fn finish(queue: &mut Queue, group: &[Queued]) {
    let keys: HashSet<KeyHash> = group.iter().filter_map(|queued| queued.key).collect();
    queue.finished(group.len(), keys);
}

/// What a crash repeats is what was delivered and is not settled: a key that goes ahead of others would leave
/// gaps.
#[tokio::test]
async fn the_oldest_goes_first_however_many_go_at_once() {
    for messages in 1..=11 {
        let (mut queue, mut order) = (queue(true), Vec::new());
        while queue.has_ready() {
            let group = take(&mut queue, messages);
            order.extend(ids(&group));
            finish(&mut queue, &group);
        }
        assert_eq!(order, (1..=10).collect::<Vec<i64>>(), "{messages} at once");
        assert_eq!(queue.load(), (0, 0));
    }
}

#[tokio::test]
async fn a_key_has_one_group_under_way() {
    let mut queue = queue(true);
    let first = take(&mut queue, 3);
    assert_eq!(ids(&first), [1, 2, 3]);
    assert_eq!(ids(&take(&mut queue, 10)), [5, 10], "both keys are under way");
    assert!(!queue.has_ready());
    finish(&mut queue, &first);
    assert_eq!(ids(&take(&mut queue, 10)), [4, 6, 7, 8, 9]);
}

#[tokio::test]
async fn topics_that_do_not_mix_go_apart_and_in_the_order_of_keys() {
    let mut queue = queue(false);
    let first = take(&mut queue, 10);
    assert_eq!(ids(&first), [1, 2, 4, 5, 10], "3 and 6 are of another topic");
    finish(&mut queue, &first);
    let second = take(&mut queue, 10);
    assert_eq!(ids(&second), [3, 6]);
    finish(&mut queue, &second);
    assert_eq!(ids(&take(&mut queue, 10)), [7, 8]);
}

#[tokio::test]
async fn what_coalesces_goes_along_and_takes_no_room() {
    let mut queue = queue(true);
    let group = take_coalesced(&mut queue, 2, |queued| queued.message.topic == "t");
    assert_eq!(ids(&group), [1, 2, 4], "4 stands for 2");
}

/// Two keys may have one hash: what is written about one says nothing about the other.
#[tokio::test]
async fn keys_with_one_hash_do_not_stand_for_each_other() {
    let mut queue = Queue::new(false);
    for (id, name) in [(1, "a"), (2, "b"), (3, "b"), (4, "a"), (5, "a")] {
        let mut queued = queued(id, Some(7), "t");
        queued.message.key = Some(name.to_owned());
        queue.push(queued);
    }
    let group = take_coalesced(&mut queue, 2, |_| true);
    assert_eq!(ids(&group), [1, 2, 3], "3 stands for 2, and nothing for 1");
}

#[tokio::test]
async fn a_group_has_one_message_of_each_key_where_that_is_needed() {
    let mut queue = Queue::new(true);
    (1..=6).for_each(|id| queue.push(queued(id, Some(id % 2), "t")));
    let mut order = Vec::new();
    while queue.has_ready() {
        let group = take(&mut queue, 10);
        order.push(ids(&group));
        finish(&mut queue, &group);
    }
    assert_eq!(order, [[1, 2], [3, 4], [5, 6]]);
}

#[tokio::test]
async fn what_waits_for_a_destination_can_be_taken_out_but_not_what_is_under_way() {
    let mut queue = queue(false);
    let first = queue.take("t", Fit { messages: 2, bytes: usize::MAX }, |_| false);
    assert_eq!(ids(&first), [1, 2]);
    let out = queue.take_place("t", |queued| queued.position().0 == 10);
    let out: Vec<_> = out.iter().map(|line| ids(line)).collect();
    assert_eq!(out, [[5]], "both keys are under way, and 10 is kept");
    finish(&mut queue, &first);
    let out = queue.take_place("third", |_| false);
    assert_eq!(out.iter().map(|line| ids(line)).collect::<Vec<_>>(), [vec![3, 7, 9]]);
    assert_eq!(queue.load().0, 4, "4, 6, 8 and 10");
}
