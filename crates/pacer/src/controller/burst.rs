//! How many of a burst a service accepted that refuses at once.
//!
//! Requests of a burst may arrive in another order than they were sent, so the first refusal does not
//! tell where the ceiling is. But a service that refuses within a fraction of a round trip was working on all the
//! others just then: what it accepts of those under way is what it accepts.

/// Counts what is accepted of the requests that were under way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Burst {
    /// Those before this one were under way.
    until: Option<u64>,
    level: u32,
    accepted: u32,
}

impl Burst {
    /// A request was refused at once, at this level.
    pub fn begin(&mut self, next: u64, level: u32) {
        if self.until.is_none() {
            *self = Self { until: Some(next), level, accepted: 0 };
        }
    }

    /// A request was accepted. If it is the first that started after the burst: how many of that were.
    pub fn accepted(&mut self, id: u64) -> Option<u32> {
        if id < self.until? {
            self.accepted += 1;
            return None;
        }
        self.until = None;
        (1..=self.level).contains(&self.accepted).then_some(self.accepted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_under_way_is_counted() {
        let mut burst = Burst::default();
        assert_eq!(burst.accepted(3), None);
        burst.begin(32, 32);
        (0..20).for_each(|id| assert_eq!(burst.accepted(id), None));
        burst.begin(40, 1);
        assert_eq!(burst.accepted(33), Some(20));
        assert_eq!(burst.accepted(34), None);
    }
}
