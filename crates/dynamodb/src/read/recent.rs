//! Messages that were marked a short time ago: indexes may still show them. Pure.
//!
//! Somebody may also have made one outstanding again, and then it goes by the same name. Indexes rarely lag for long:
//! what one still shows some time after the mark is looked up in the table now and then.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};
use tidegate_core::outbox::by_state::Row;

/// Longer than any index is known to lag behind its table.
pub(crate) const INDEX_LAG: Duration = Duration::from_secs(60);

/// More are not remembered: 60 seconds of 4,000 messages a second.
const MOST: usize = 250_000;

/// What an index still shows so long after the mark is looked up in the table, …
const DOUBT: Duration = Duration::from_secs(2);

/// Names of messages, for as long as indexes may lag.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    rows: HashMap<Row, Doubt>,
    order: VecDeque<(Instant, Row)>,
    /// Until then, some that were marked are not remembered any more.
    forgot_until: Option<Instant>,
}

/// When a message is looked up that an index still shows; … and then after twice the time, each time.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    at: Instant,
    pause: Duration,
}

impl Doubt {
    fn after(pause: Duration, now: Instant) -> Self {
        Self { at: now + pause, pause }
    }
}

impl Recent {
    pub fn add(&mut self, row: Row, now: Instant) {
        if self.rows.insert(row.clone(), Doubt::after(DOUBT, now)).is_none() {
            self.order.push_back((now, row));
        }
        if self.order.len() > MOST {
            self.drop_first();
            self.forgot_until = Some(now + INDEX_LAG);
        }
    }

    pub fn contains(&self, row: &Row) -> bool {
        self.rows.contains_key(row)
    }

    /// After how long one that was marked must be looked up, if an index still shows it then; `None` if it was not
    /// marked lately.
    pub fn doubt(&self, row: &Row, now: Instant) -> Option<Duration> {
        self.rows.get(row).map(|doubt| doubt.at.saturating_duration_since(now))
    }

    /// It was looked up: it is done, and the index lags.
    pub fn is_done(&mut self, row: &Row, now: Instant) {
        if let Some(doubt) = self.rows.get_mut(row) {
            *doubt = Doubt::after(doubt.pause * 2, now);
        }
    }

    /// It was looked up: somebody has made it outstanding again.
    pub fn is_outstanding(&mut self, row: &Row) {
        if self.rows.remove(row).is_some() {
            self.order.retain(|(_, other)| other != row);
        }
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
    fn what_is_shown_for_long_is_looked_up_now_and_then() {
        let (mut recent, start) = (Recent::default(), Instant::now());
        let (row, after) = (Row::from("a"), |seconds| start + Duration::from_secs(seconds));
        assert_eq!(recent.doubt(&row, start), None);
        recent.add(row.clone(), start);
        assert_eq!(recent.doubt(&row, start), Some(DOUBT));
        let mut looked_up = 0;
        for second in 0..60 {
            if recent.doubt(&row, after(second)) == Some(Duration::ZERO) {
                looked_up += 1;
                recent.is_done(&row, after(second));
            }
        }
        assert_eq!(looked_up, 4, "after 2, 6, 14 and 30 s");
        recent.is_outstanding(&row);
        assert!(!recent.contains(&row));
        // It is done once more, and remembered from then on.
        recent.add(row.clone(), after(60));
        recent.tidy(after(100));
        assert!(recent.contains(&row));
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
