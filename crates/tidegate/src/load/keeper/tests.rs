use super::*;
use crate::{
    Access,
    load::{Load, LoadSpec},
};
use async_trait::async_trait;
use std::{io::Cursor, sync::Arc};
use tidegate_core::{
    Sink,
    sink::{Answer, Delivery, Hint, Outcome, SinkCapabilities, SinkError},
};
use tidegate_pacer::{Binding, Options};
use tidegate_records::{Input, Records};

/// Takes nothing, and wants to be left alone if it is asked.
struct Busy;

const ASKED: Duration = Duration::from_secs(20);

#[async_trait]
impl Sink for Busy {
    fn capabilities(&self) -> SinkCapabilities {
        SinkCapabilities {
            name: "busy",
            connections: vec!["main".to_owned(), "other".to_owned()],
            operation: "post".to_owned(),
            max_group: 1,
            mixes_topics: true,
            budgets: Vec::new(),
        }
    }

    async fn check(&self) -> Result<Vec<Option<Duration>>, SinkError> {
        Ok(vec![Some(ASKED), None])
    }

    async fn deliver(&self, _: Delivery<'_>) -> Answer {
        Answer { outcome: Outcome::TimedOut, hint: Hint::default() }
    }
}

fn load() -> Load {
    let input = Input::Stdin(Box::new(Cursor::new("{\"n\":1}\n")));
    let records = Records::open(input, &tidegate_records::Options::default(), &mut |_| {});
    let spec = LoadSpec {
        to: "busy".to_owned(),
        place: "busy".to_owned(),
        group: 1,
        pacer: Options::default(),
        max_attempts: 5,
    };
    Load::new(records.unwrap(), Arc::new(Busy), spec).unwrap()
}

async fn store() -> OpenStore {
    crate::open("memory:", Access::Create).await.unwrap()
}

fn known(class: &str, level: u32, throttled: bool, retry_after: u64) -> Remembered {
    Remembered {
        connection: "main".to_owned(),
        class: class.to_owned(),
        level,
        throttled,
        retry_after: Duration::from_secs(retry_after),
        at: Duration::ZERO,
    }
}

/// Another process writes down its pace.
async fn noted_by(worker: &str, remembered: Remembered, store: &OpenStore) {
    let (statistics, sent) = (Vec::new(), Sent::default());
    let pace =
        Pace { statistics, remembered: vec![remembered], sent, running: true, stalled: None };
    let note = PaceNote {
        sink: "busy".to_owned(),
        batch: BatchId(7),
        worker: WorkerId(worker.to_owned()),
        body: serde_json::to_string(&pace).unwrap(),
    };
    store.note_pace(note).await.unwrap();
}

fn keeper<'a>(load: &'a Load, store: &'a OpenStore) -> Keeper<'a> {
    Keeper::new(load, store, BatchId(1), WorkerId("me".to_owned()))
}

fn bindings(load: &Load) -> Vec<Binding> {
    load.statistics().into_iter().map(|statistics| statistics.binding).collect()
}

#[tokio::test]
async fn what_another_process_was_asked_is_heeded() {
    let (load, store) = (load(), store().await);
    keeper(&load, &store).share().await;
    assert_eq!(bindings(&load), [Binding::Nothing; 2]);
    noted_by("another", known("patch", 3, true, 60), &store).await;
    keeper(&load, &store).share().await;
    assert_eq!(bindings(&load), [Binding::RetryAfter, Binding::Nothing]);
    assert_eq!(load.gate.remembered(load.clock.time())[0].retry_after, Duration::ZERO, "not ours");
}

#[tokio::test]
async fn a_limit_is_shared_with_the_others_at_work() {
    let (load, store) = (load(), store().await);
    noted_by("another", known("post", 20, true, 0), &store).await;
    noted_by("a third", known("post", 16, false, 0), &store).await;
    load.recall(&store).await;
    assert_eq!(load.statistics()[0].ceiling, Some(20), "the last one that was a limit");
    keeper(&load, &store).share().await;
    assert_eq!(load.statistics()[0].limit, 6);
    let whole = &load.gate.remembered(load.clock.time())[0];
    assert_eq!((whole.level, whole.throttled), (20, true), "the next process divides by itself");
}

#[tokio::test]
async fn a_sink_that_wants_to_be_left_alone_is_not_asked() {
    let (one, store) = (load(), store().await);
    one.check(&store).await.unwrap();
    assert_eq!(
        bindings(&one),
        [Binding::RetryAfter, Binding::Nothing],
        "what it answers is heeded"
    );
    let mine = &one.gate.remembered(one.clock.time())[0];
    assert!(mine.retry_after > Duration::from_secs(19), "and outlives the process");
    noted_by("another", known("patch", 3, true, 60), &store).await;
    let two = load();
    two.check(&store).await.unwrap();
    let left = two.gate.throttled_until().saturating_sub(two.clock.time());
    assert!(left > ASKED, "it was not asked again: {left:?}");
}
