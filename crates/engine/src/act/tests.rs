use super::*;
use crate::group::Group;
use std::time::Duration;
use tidegate_core::{
    Batch, BatchId, Fence, Items, Keep, Lease, Range, RetryItem, RetryPolicy, Run, RunError,
    Snapshot,
    limits::{MAX_PAGE_BYTES, MAX_REASON_BYTES},
    settle::Progress,
    workload::Prepared,
};
use tokio::time::Instant;

/// Fails as its index says: 0 mod 4 succeeds, 1 fails, 2 panics, 3 fails for good.
struct Moody;

impl Prepared for Moody {
    fn run(&self, run: &mut Run, result: &mut Vec<u8>) -> Result<(), RunError> {
        match run.index() % 4 {
            0 => result.extend_from_slice(b"\"fine\""),
            1 => return Err(RunError::new("not now")),
            2 => panic!("oh no"),
            _ => return Err(RunError::permanent("never")),
        }
        Ok(())
    }
}

fn group(lo: u64, hi: u64) -> Group {
    let batch = Batch {
        id: BatchId(1),
        workload: "moody".to_owned(),
        snapshot: Snapshot::from_canonical("null".to_owned()).hash(),
        seed: 1,
        runs: 100,
        keep: Keep::All,
        retry: RetryPolicy::default(),
        timeout: None,
    };
    let items = Items::Range(Range::new(lo, hi));
    let lease = Lease { batch: batch.id, fence: Fence(1), items, suspect: false };
    Group { lease, batch: Arc::new(batch), prepared: Arc::new(Moody) }
}

/// Hands that are moved by the test.
#[derive(Default)]
struct Hand {
    begun: Option<(RetryItem, u32)>,
}

impl Hand {
    fn act(&mut self, acting: &Acting) -> Next {
        let now = Instant::now();
        let begun = self.begun.take().or_else(|| acting.begin(now));
        let (item, turn) = begun.expect("there is a run to begin");
        let mut workbench = Workbench::default();
        let next = acting.record(turn, workbench.act(acting.group(), item), now);
        if let Next::Go { item, .. } = next {
            self.begun = Some((item, turn));
        }
        next
    }
}

fn waiting(next: Next) -> u64 {
    let Next::Go { waiting, .. } = next else { panic!("the hands may go on, not {next:?}") };
    waiting
}

#[test]
fn each_run_has_its_own_verdict() {
    let acting = Acting::new(group(0, 4), 100);
    let mut hand = Hand::default();
    let last = (0..4).map(|_| hand.act(&acting)).last();
    assert_eq!(last, Some(Next::End));
    let outcome = acting.collect().unwrap();
    assert_eq!(outcome.page.unwrap().results, "[\"fine\"]");
    assert_eq!(outcome.aggregates.runs, 1);
    let failed: Vec<_> = outcome
        .failed
        .iter()
        .map(|failed| (failed.index, failed.reason.as_str(), failed.delay.is_some()))
        .collect();
    assert_eq!(failed, [(1, "not now", true), (2, "panicked: oh no", true), (3, "never", false)]);
    assert!(outcome.finished);
}

#[test]
fn what_is_collected_is_not_collected_again() {
    let acting = Acting::new(group(0, 8), 100);
    let mut hand = Hand::default();
    for count in 1..=3 {
        assert_eq!(waiting(hand.act(&acting)), count);
    }
    let range = |lo, hi| Progress::Range { settled: Range::new(lo, hi), end: 8 };
    assert_eq!(acting.collect().unwrap().progress, range(0, 3));
    assert!(acting.collect().is_none());
    hand.act(&acting);
    assert_eq!(acting.collect().unwrap().progress, range(3, 4));
    let rest = |lo, settling| Held {
        lease: Lease { items: Items::Range(Range::new(lo, 8)), ..group(0, 8).lease },
        settling,
    };
    assert_eq!(acting.rest(), rest(0, true));
    acting.settled(3);
    assert_eq!(acting.rest(), rest(3, true));
    acting.settled(1);
    assert_eq!(acting.rest(), rest(4, false));
}

#[test]
fn a_full_buffer_holds_the_hands_up_until_it_is_collected() {
    let acting = Arc::new(Acting::new(group(0, 8), 1));
    assert_eq!(Hand::default().act(&acting), Next::Wait);
    assert!(acting.must_wait());
    let waiting = std::thread::spawn({
        let acting = acting.clone();
        move || acting.wait_until_collected()
    });
    assert!(acting.collect().is_some());
    waiting.join().unwrap();
    assert!(!acting.must_wait());
}

#[test]
fn a_hung_run_is_taken_over_and_its_thread_changes_nothing() {
    let acting = Acting::new(group(0, 8), 100);
    let limit = Duration::from_secs(5);
    let start = Instant::now();
    let (item, turn) = acting.begin(start).unwrap();
    assert_eq!(acting.in_progress(), Some(0));
    assert!(!acting.take_over(1, limit, start));
    assert!(acting.take_over(0, limit, start + limit));
    assert_eq!(waiting(Hand::default().act(&acting)), 2);

    let mut workbench = Workbench::default();
    let acted = workbench.act(acting.group(), item);
    assert_eq!(acting.record(turn, acted, start), Next::Superseded);
    let outcome = acting.collect().unwrap();
    assert!(outcome.failed[0].reason.starts_with("timed out"));
    assert_eq!(outcome.progress.len(), 2);
}

#[test]
fn a_halted_group_begins_nothing_but_keeps_what_is_finished() {
    let acting = Acting::new(group(0, 8), 100);
    Hand::default().act(&acting);
    acting.halt();
    assert!(acting.begin(Instant::now()).is_none());
    assert_eq!(acting.collect().unwrap().progress.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn few_runs_are_collected_after_a_while() {
    let desk = Desk::new(1, 1_000, Duration::from_millis(250));
    desk.put(vec![group(0, 8)]);
    let acting = desk.next().await.unwrap();
    Hand::default().act(&acting);
    let start = Instant::now();
    let outcomes = desk.outcomes().await;
    assert_eq!(outcomes.len(), 1);
    assert_eq!(start.elapsed(), Duration::from_millis(250));
}

#[tokio::test(start_paused = true)]
async fn many_runs_are_collected_at_once() {
    let desk = Desk::new(1, 4, Duration::from_secs(3600));
    desk.put(vec![group(0, 8)]);
    let acting = desk.next().await.unwrap();
    let start = Instant::now();
    let mut hand = Hand::default();
    (0..4).for_each(|_| desk.recorded(hand.act(&acting)));
    assert_eq!(desk.outcomes().await[0].progress.len(), 4);
    assert_eq!(start.elapsed(), Duration::ZERO);
}

/// Yields a megabyte.
struct Large;

impl Prepared for Large {
    fn run(&self, _: &mut Run, result: &mut Vec<u8>) -> Result<(), RunError> {
        result.resize(1 << 20, b'1');
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn large_results_are_collected_at_once_however_few() {
    let desk = Desk::new(1, 1_000, Duration::from_secs(3600));
    desk.put(vec![Group { prepared: Arc::new(Large), ..group(0, 8) }]);
    let acting = desk.next().await.unwrap();
    let start = Instant::now();
    let mut hand = Hand::default();
    while hand.act(&acting) != Next::Wait {}
    assert_eq!(desk.outcomes().await[0].progress.len(), 4);
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert!(!acting.must_wait());
}

/// Fails with much to say.
struct Wordy;

impl Prepared for Wordy {
    fn run(&self, _: &mut Run, _: &mut Vec<u8>) -> Result<(), RunError> {
        Err(RunError::new("no".repeat(MAX_REASON_BYTES)))
    }
}

#[test]
fn failures_fill_a_buffer_as_results_do() {
    let acting = Acting::new(Group { prepared: Arc::new(Wordy), ..group(0, 10_000) }, 1_000_000);
    let mut hand = Hand::default();
    let acted = (1..).find(|_| hand.act(&acting) == Next::Wait).unwrap();
    assert!(acted <= MAX_PAGE_BYTES / MAX_REASON_BYTES, "{acted} failures are waiting");
}

#[tokio::test(start_paused = true)]
async fn what_waits_longest_is_collected_first() {
    let desk = Desk::new(2, 2, Duration::from_secs(3600));
    let younger = Lease { fence: Fence(2), ..group(0, 8).lease };
    desk.put(vec![group(0, 8), Group { lease: younger, ..group(0, 8) }]);
    let (busy, other) = (desk.next().await.unwrap(), desk.next().await.unwrap());
    Hand::default().act(&other);
    let mut hand = Hand::default();
    for _ in 0..2 {
        tokio::time::advance(Duration::from_millis(1)).await;
        hand.act(&busy);
    }
    let fences: Vec<Fence> = desk.outcomes().await.iter().map(|outcome| outcome.fence).collect();
    assert_eq!(fences, [Fence(2), Fence(1)]);
}

#[tokio::test(start_paused = true)]
async fn the_last_runs_wait_for_nothing() {
    let desk = Desk::new(1, 1_000, Duration::from_secs(3600));
    desk.put(vec![group(0, 2)]);
    let acting = desk.next().await.unwrap();
    let mut hand = Hand::default();
    (0..2).for_each(|_| desk.recorded(hand.act(&acting)));
    let outcomes = desk.outcomes().await;
    assert!(outcomes[0].finished);
    desk.settled(&outcomes);
    desk.finish();
    assert!(desk.outcomes().await.is_empty());
}
