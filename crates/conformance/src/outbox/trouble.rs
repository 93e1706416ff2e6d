//! Sinks that take nothing, as relays say.

use super::{bench::Bench, relay::tick};
use crate::harness::LATER;
use std::time::Duration;
use tidegate_core::{
    WorkerId,
    outbox::{SinkTrouble, TroubleNote, TroubledSink},
};

async fn note(bench: &Bench, relay: &str, sinks: &[(&str, &str)], valid: Duration) {
    note_lasting(bench, relay, sinks, valid, Duration::ZERO).await;
}

async fn note_lasting(
    bench: &Bench,
    relay: &str,
    sinks: &[(&str, &str)],
    valid: Duration,
    lasts: Duration,
) {
    let relay = WorkerId(relay.to_owned());
    let sinks = sinks.iter().map(|(sink, reason)| TroubledSink {
        sink: (*sink).to_owned(),
        reason: (*reason).to_owned(),
        lasts,
    });
    let note = TroubleNote { relay, sinks: sinks.collect(), valid };
    bench.store.note_sinks(note).await.expect("note the state of sinks");
}

async fn noted(bench: &Bench) -> Vec<SinkTrouble> {
    bench.outbox().await.sinks
}

async fn names(bench: &Bench) -> Vec<(String, String, u64)> {
    noted(bench).await.into_iter().map(|it| (it.sink, it.reason, it.relays)).collect()
}

fn expected(sink: &str, reason: &str, relays: u64) -> (String, String, u64) {
    (sink.to_owned(), reason.to_owned(), relays)
}

pub(crate) async fn the_last_note_of_a_relay_counts(bench: Bench) {
    assert_eq!(names(&bench).await, []);
    note(&bench, "one", &[("a", "it's \"down\""), ("b", "no")], LATER).await;
    let both = [expected("a", "it's \"down\"", 1), expected("b", "no", 1)];
    assert_eq!(names(&bench).await, both);
    note(&bench, "one", &[("b", "still no")], LATER).await;
    assert_eq!(names(&bench).await, [expected("b", "still no", 1)]);
    note(&bench, "one", &[], LATER).await;
    assert_eq!(names(&bench).await, []);
}

/// However long that is, and whatever was noted before.
pub(crate) async fn trouble_lasts_as_long_as_its_relay_says(bench: Bench) {
    for seconds in [0, 70, 3_600, 1, 86_400, 0] {
        let said = Duration::from_secs(seconds);
        note_lasting(&bench, "one", &[("a", "down")], LATER, said).await;
        tick().await;
        let lasts = noted(&bench).await[0].lasts;
        assert!(lasts > said && lasts < said + Duration::from_secs(30), "{said:?}: {lasts:?}");
    }
    note_lasting(&bench, "two", &[("a", "for longer")], LATER, Duration::from_secs(60)).await;
    assert_eq!(names(&bench).await, [expected("a", "for longer", 2)]);
}

pub(crate) async fn relays_speak_for_themselves(bench: Bench) {
    note(&bench, "one", &[("a", "first")], LATER).await;
    tick().await;
    note(&bench, "two", &[("a", "second"), ("b", "no")], LATER).await;
    assert_eq!(names(&bench).await, [expected("a", "first", 2), expected("b", "no", 1)]);
    note(&bench, "one", &[], LATER).await;
    assert_eq!(names(&bench).await, [expected("a", "second", 1), expected("b", "no", 1)]);
}

pub(crate) async fn a_relay_that_is_gone_is_not_believed(bench: Bench) {
    note(&bench, "gone", &[("a", "down")], Duration::ZERO).await;
    tick().await;
    assert_eq!(names(&bench).await, []);
    note(&bench, "other", &[("b", "down")], LATER).await;
    assert_eq!(names(&bench).await, [expected("b", "down", 1)]);
    note(&bench, "gone", &[("a", "down again")], LATER).await;
    let after = noted(&bench).await;
    assert_eq!((after[0].sink.as_str(), after[0].relays), ("a", 1), "{after:?}");
}
