//! Messages that were marked a short time ago: indexes may still show them. Pure.

use std::{
    collections::{HashSet, VecDeque},
    time::{Duration, Instant},
};
use tidegate_core::outbox::by_state::Row;

/// Longer than any index is known to lag behind its table.
pub(crate) const INDEX_LAG: Duration = Duration::from_secs(60);

/// More are not remembered: 60 seconds of 4,000 messages a second.
const MOST: usize = 250_000;

/// Names of messages, for as long as indexes may lag.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    rows: HashSet<Row>,
    order: VecDeque<(Instant, Row)>,
    /// Until then, some that were marked are not remembered any more.
    forgot_until: Option<Instant>,
}

impl Recent {
    pub fn add(&mut self, row: Row, now: Instant) {
        if self.rows.insert(row.clone()) {
            self.order.push_back((now, row));
        }
        if self.order.len() > MOST {
            self.drop_first();
            self.forgot_until = Some(now + INDEX_LAG);
        }
    }

    pub fn contains(&self, row: &Row) -> bool {
        self.rows.contains(row)
    }

    /// Forgets what is old enough.
    pub fn tidy(&mut self, now: Instant) {
        while self
            .order
            .front()
            .is_some_and(|(at, _)| now.saturating_duration_since(*at) > INDEX_LAG)
        {
            self.drop_first();
        }
        self.forgot_until = self.forgot_until.filter(|until| *until > now);
    }

    /// Whether an index may show something that was marked here, and is not remembered.
    pub fn is_incomplete(&self) -> bool {
        self.forgot_until.is_some()
    }

    fn drop_first(&mut self) {
        if let Some((_, row)) = self.order.pop_front() {
            self.rows.remove(&row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_marked_is_remembered_for_as_long_as_indexes_lag() {
        let (mut recent, start) = (Recent::default(), Instant::now());
        recent.add("a".into(), start);
        recent.add("b".into(), start + Duration::from_secs(30));
        recent.tidy(start + Duration::from_secs(61));
        assert!(!recent.contains(&"a".into()) && recent.contains(&"b".into()));
        assert!(!recent.is_incomplete());
    }

    #[test]
    fn more_than_fits_is_said() {
        let (mut recent, start) = (Recent::default(), Instant::now());
        (0..=MOST).for_each(|n| recent.add(n.to_string().into(), start));
        assert!(!recent.contains(&"0".into()) && recent.is_incomplete());
        recent.tidy(start + INDEX_LAG * 2);
        assert!(!recent.is_incomplete() && !recent.contains(&MOST.to_string().as_str().into()));
    }
}
