use super::*;
use async_trait::async_trait;
use tidegate_core::sink::{Answer, Delivery, SinkCapabilities, SinkError};

struct Silent;

#[async_trait]
impl Sink for Silent {
    fn capabilities(&self) -> SinkCapabilities {
        SinkCapabilities {
            name: "silent",
            connections: vec!["main".to_owned()],
            operation: "write".to_owned(),
            max_group: 10,
            mixes_topics: false,
            budgets: Vec::new(),
        }
    }

    async fn check(&self) -> Result<Vec<Option<Duration>>, SinkError> {
        Ok(vec![None])
    }

    async fn deliver(&self, _: Delivery<'_>) -> Answer {
        unreachable!("nothing is sent")
    }
}

fn destinations() -> Destinations {
    Destinations::new(Arc::new(Silent), Options::default(), WallClock::start()).unwrap()
}

#[tokio::test]
async fn a_bounded_number_of_destinations_is_remembered() {
    let destinations = destinations();
    let kept = destinations.channel("kept");
    for n in 0..5_000 {
        let channel = destinations.channel(&format!("c{n}"));
        channel.answered(channel.clock.time());
        channel.meter.requests.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        drop(channel);
        destinations.forget(|place| place == "c0");
        assert!(destinations.count() <= REMEMBERED + 2, "{}", destinations.count());
    }
    assert!(Arc::ptr_eq(&kept, &destinations.channel("kept")), "somebody sends on it");
    assert!(destinations.all().iter().any(|(place, _)| place == "c0"), "something waits for it");
    assert_eq!(destinations.sent().requests, 5_000, "what was sent is not forgotten");
    assert!(destinations.statistics().len() <= REMEMBERED + 2);
}

#[tokio::test(start_paused = true)]
async fn one_that_comes_back_makes_the_others_try() {
    let destinations = destinations();
    let (one, other) = (destinations.channel("one"), destinations.channel("other"));
    let now = one.clock.time();
    for channel in [&one, &other] {
        for tried in (1..8).map(Duration::from_millis) {
            channel.absent("gone", now + tried, now + tried);
        }
    }
    assert!(other.until().unwrap() > now + Duration::from_secs(5));
    tokio::time::advance(Duration::from_secs(1)).await;
    one.answered(one.clock.time());
    assert_eq!(one.absence(), None);
    assert!(other.until().unwrap() <= other.clock.time(), "it is tried at once");
    other.absent("gone", other.clock.time(), other.clock.time());
    assert!(other.until().unwrap() > other.clock.time(), "and left alone again");
    assert_eq!(destinations.absence().as_deref(), Some("other: gone"));
}
