//! Where recent reads ended, so that the next one can go on from there.

use crate::index::Point;
use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

/// As many readers can each go through their own part without looking for its place again.
const MAX_POINTS: usize = 256;

/// Where recent reads ended, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Trail {
    points: Mutex<VecDeque<Point>>,
}

impl Trail {
    /// The last point from which record `index` can be reached.
    pub fn before(&self, index: u64) -> Option<Point> {
        let points = self.points.lock().unwrap_or_else(PoisonError::into_inner);
        points.iter().filter(|point| point.index <= index).max_by_key(|point| point.index).copied()
    }

    /// A read that began at record `begin` ended here. Its beginning is given up for its end: a
    /// reader who goes on needs one place, however far it goes.
    pub fn moved(&self, begin: u64, end: Point) {
        let mut points = self.points.lock().unwrap_or_else(PoisonError::into_inner);
        points.retain(|point| point.index != begin && point.index != end.index);
        if points.len() == MAX_POINTS {
            points.pop_front();
        }
        points.push_back(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(index: u64) -> Point {
        Point { index, offset: index * 10, line: index + 1 }
    }

    #[test]
    fn the_nearest_end_before_is_found() {
        let trail = Trail::default();
        assert_eq!(trail.before(5), None);
        trail.moved(0, at(10));
        trail.moved(90, at(100));
        assert_eq!(trail.before(9), None);
        assert_eq!(trail.before(10), Some(at(10)));
        assert_eq!(trail.before(99), Some(at(10)));
        assert_eq!(trail.before(1000), Some(at(100)));
    }

    #[test]
    fn readers_that_go_on_keep_their_places_and_the_others_are_forgotten() {
        let trail = Trail::default();
        trail.moved(0, at(1));
        for step in 1..10_000 {
            trail.moved(step, at(step + 1));
        }
        assert_eq!(trail.points.lock().unwrap().len(), 1);
        for reader in 0..1000 {
            trail.moved(1_000_000 + reader * 100, at(1_000_010 + reader * 100));
        }
        assert_eq!(trail.points.lock().unwrap().len(), MAX_POINTS);
        assert_eq!(trail.before(1_000_000), None);
    }
}
