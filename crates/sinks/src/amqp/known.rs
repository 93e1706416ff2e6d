//! The queues that are known to be there: a bounded number, however many names there are.

use std::collections::{HashSet, VecDeque};

/// The most that are remembered. One that is forgotten is declared again, which changes nothing.
const MOST: usize = 10_000;

/// Names that were seen last.
#[derive(Debug, Default)]
pub struct Known {
    names: HashSet<String>,
    /// The oldest first.
    order: VecDeque<String>,
}

impl Known {
    pub fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Remembers a name, and forgets the oldest if there are too many.
    pub fn insert(&mut self, name: &str) {
        if !self.names.insert(name.to_owned()) {
            return;
        }
        self.order.push_back(name.to_owned());
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.names.remove(&oldest);
        }
    }

    pub fn remove(&mut self, name: &str) {
        if self.names.remove(name) {
            self.order.retain(|known| known != name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_names_are_known_and_no_more() {
        let mut known = Known::default();
        for n in 0..3 * MOST {
            known.insert(&format!("queue-{n}"));
            known.insert(&format!("queue-{n}"));
            assert!(known.names.len() <= MOST && known.order.len() == known.names.len());
        }
        assert!(known.contains(&format!("queue-{}", 2 * MOST)));
        assert!(!known.contains("queue-0"));
        known.remove(&format!("queue-{}", 2 * MOST));
        assert!(!known.contains(&format!("queue-{}", 2 * MOST)));
        assert_eq!(known.order.len(), MOST - 1);
    }
}
