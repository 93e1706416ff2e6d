use super::*;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Plays back replies, one per item, by the item's id.
#[derive(Default)]
struct Fake {
    connects: AtomicU32,
    refuses: bool,
    hangs: bool,
    keeps: bool,
}

#[async_trait]
impl Protocol for Fake {
    type Connection = u32;

    fn place(&self) -> String {
        "h:1".to_owned()
    }

    async fn connect(&self) -> Result<u32, Failure> {
        if self.hangs {
            std::future::pending::<()>().await;
        }
        if self.refuses {
            return Err(Failure::Broken("no".to_owned()));
        }
        Ok(self.connects.fetch_add(1, Relaxed))
    }

    fn is_alive(&self, connection: &u32) -> bool {
        *connection != 1
    }

    fn is_worth_keeping(&self, _: &u32) -> bool {
        self.keeps
    }

    async fn check(&self, _: &u32) -> Result<(), Failure> {
        Ok(())
    }

    async fn publish(&self, _: &u32, items: &[Item<'_>], _: Instant) -> Vec<Reply> {
        let reply = |item: &Item<'_>| match item.id {
            "retry" => Ok(Verdict::Retry("no".to_owned())),
            "late" => Err(Failure::TimedOut),
            "lost" => Err(Failure::Unavailable("gone".to_owned())),
            _ => Ok(Verdict::Done),
        };
        items.iter().map(reply).collect()
    }
}

fn broker(fake: Fake) -> Broker<Fake> {
    Broker::new("fake", fake, 10, Duration::from_secs(60))
}

async fn deliver(broker: &Broker<Fake>, items: &[(&str, &str)]) -> Outcome {
    let items = items.iter().map(|(id, key)| Item { key: Some(key), ..Item::record(id, "{}") });
    let items: Vec<_> = items.collect();
    broker.deliver(Delivery { connection: 0, items: &items }).await.outcome
}

#[tokio::test]
async fn what_is_behind_an_item_that_failed_is_not_sent() {
    let broker = broker(Fake::default());
    let outcome = deliver(&broker, &[("1", "a"), ("retry", "a"), ("3", "a")]).await;
    let expected = vec![Verdict::Done, Verdict::Retry("no".to_owned()), Verdict::Behind];
    assert_eq!(outcome, Outcome::Answered(expected));
}

#[tokio::test]
async fn what_was_done_before_a_loss_is_done() {
    let broker = broker(Fake::default());
    let outcome = deliver(&broker, &[("1", "a"), ("lost", "a"), ("3", "a"), ("4", "b")]).await;
    let gone = Verdict::Unavailable("gone".to_owned());
    let expected = vec![Verdict::Done, gone, Verdict::Behind, Verdict::Done];
    assert_eq!(outcome, Outcome::Answered(expected));
}

#[tokio::test]
async fn nothing_is_sent_after_a_loss() {
    let broker = broker(Fake::default());
    let outcome = deliver(&broker, &[("1", "a"), ("lost", "b"), ("3", "a")]).await;
    let gone = Verdict::Unavailable("gone".to_owned());
    assert_eq!(outcome, Outcome::Answered(vec![Verdict::Done, gone.clone(), gone]));
}

#[tokio::test]
async fn a_broker_that_answers_nothing_is_not_there() {
    let broker = broker(Fake::default());
    assert_eq!(deliver(&broker, &[("late", "a"), ("2", "a")]).await, Outcome::TimedOut);
    let outcome = deliver(&broker, &[("lost", "a")]).await;
    assert_eq!(outcome, Outcome::Unavailable("gone".to_owned()));
}

#[tokio::test]
async fn a_connection_is_kept_until_it_is_lost() {
    let broker = broker(Fake::default());
    for _ in 0..3 {
        deliver(&broker, &[("1", "a")]).await;
    }
    assert_eq!(broker.protocol.connects.load(Relaxed), 1);
    deliver(&broker, &[("lost", "a")]).await;
    deliver(&broker, &[("1", "a")]).await;
    assert_eq!(broker.protocol.connects.load(Relaxed), 2);
    // The second one says of itself that it is dead.
    deliver(&broker, &[("1", "a")]).await;
    assert_eq!(broker.protocol.connects.load(Relaxed), 3);
}

#[tokio::test]
async fn a_connection_that_is_only_busy_is_kept() {
    let broker = broker(Fake { keeps: true, ..Fake::default() });
    for id in ["lost", "late", "1"] {
        deliver(&broker, &[(id, "a")]).await;
    }
    assert_eq!(broker.protocol.connects.load(Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn connecting_has_an_end() {
    let hanging = broker(Fake { hangs: true, ..Fake::default() });
    let expected = Outcome::Unavailable("h:1 takes no connection in time".to_owned());
    assert_eq!(deliver(&hanging, &[("1", "a")]).await, expected);
    let refusing = broker(Fake { refuses: true, ..Fake::default() });
    assert_eq!(deliver(&refusing, &[("1", "a")]).await, Outcome::Broken("no".to_owned()));
    assert_eq!(refusing.check().await.unwrap_err().to_string(), "no");
}
