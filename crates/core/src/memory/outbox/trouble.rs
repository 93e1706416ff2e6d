//! Sinks that take nothing at the moment.

use super::OutboxContent;
use crate::outbox::{SinkTrouble, TroubleNote, TroubledSink};
use std::{collections::BTreeMap, time::Duration};

/// What a relay said about a sink.
#[derive(Clone)]
pub(super) struct TroubleRow {
    reason: String,
    since: Duration,
    until: Duration,
}

impl OutboxContent {
    pub(super) fn note_sinks(&mut self, note: TroubleNote, now: Duration) {
        let TroubleNote { relay, sinks, valid } = note;
        self.trouble.retain(|(by, sink), row| match *by == relay.0 {
            true => sinks.iter().any(|it| it.sink == *sink),
            false => row.until > now,
        });
        for TroubledSink { sink, reason, lasts } in sinks {
            let (key, since) = ((relay.0.clone(), sink), now.saturating_sub(lasts));
            self.trouble.insert(key, TroubleRow { reason, since, until: now + valid });
        }
    }

    pub(super) fn troubled_sinks(&self, now: Duration) -> Vec<SinkTrouble> {
        let mut found: BTreeMap<&str, SinkTrouble> = BTreeMap::new();
        for ((_, sink), row) in self.trouble.iter().filter(|(_, row)| row.until > now) {
            let lasts = now.saturating_sub(row.since);
            let first = |relays| SinkTrouble {
                sink: sink.clone(),
                reason: row.reason.clone(),
                lasts,
                relays,
            };
            match found.get_mut(sink.as_str()) {
                Some(known) if known.lasts >= lasts => known.relays += 1,
                Some(known) => *known = first(known.relays + 1),
                None => drop(found.insert(sink, first(1))),
            }
        }
        found.into_values().collect()
    }
}
