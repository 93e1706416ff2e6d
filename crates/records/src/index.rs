//! Where some of the records begin, so that any can be found without reading all before it.

/// More points are thinned out: 65,536 of 24 bytes each are 1.5 MiB.
const MAX_POINTS: usize = 65_536;

/// The first distance between points. Finding a record costs at most this much reading.
const FIRST_STRIDE: u64 = 256 * 1024;

/// A place between two records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    /// The number of the record that follows.
    pub index: u64,
    /// How many bytes come before.
    pub offset: u64,
    /// Which line, from 1, the next byte is on.
    pub line: u64,
}

impl Point {
    /// The content's beginning.
    pub const START: Self = Self { index: 0, offset: 0, line: 1 };
}

/// Points at a distance that grows with the content, so that their number does not.
///
/// The distance is in bytes, not in records: bytes are what it costs to go from a point to a record.
/// 100 million records of 150 bytes take 57,000 points; 1 TB takes points 16 MiB apart.
#[derive(Debug)]
pub(crate) struct Index {
    points: Vec<Point>,
    stride: u64,
}

impl Index {
    /// `first` is where record 0 begins.
    pub fn new(first: Point) -> Self {
        Self { points: vec![first], stride: FIRST_STRIDE }
    }

    /// Takes notice of a place between two records; they come in order.
    pub fn pass(&mut self, point: Point) {
        let last = self.points[self.points.len() - 1];
        if point.offset - last.offset < self.stride {
            return;
        }
        self.points.push(point);
        if self.points.len() == MAX_POINTS {
            self.thin_out();
        }
    }

    /// The last point from which record `index` can be reached.
    pub fn before(&self, index: u64) -> Point {
        let after = self.points.partition_point(|point| point.index <= index);
        self.points[after.saturating_sub(1)]
    }

    fn thin_out(&mut self) {
        let mut place = 0;
        self.points.retain(|_| {
            place += 1;
            place % 2 == 1
        });
        self.stride *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index_over(records: u64, bytes: u64) -> Index {
        let point = |index| Point { index, offset: index * bytes, line: index + 1 };
        let mut index = Index::new(point(0));
        (1..records).for_each(|record| index.pass(point(record)));
        index
    }

    #[test]
    fn any_record_is_near_a_point() {
        let index = index_over(100_000, 150);
        assert_eq!(index.before(0).index, 0);
        for record in 0..100_000 {
            let point = index.before(record);
            assert!(point.index <= record);
            assert!((record - point.index) * 150 <= FIRST_STRIDE);
        }
    }

    #[test]
    fn a_huge_file_takes_no_more_points() {
        let index = index_over(20_000_000, 64 * 1024);
        assert!(index.points.len() < MAX_POINTS, "{}", index.points.len());
        assert!(index.points.capacity() * size_of::<Point>() <= 2 * 1024 * 1024);
        let point = index.before(19_999_999);
        assert!((19_999_999 - point.index) * 64 * 1024 <= 2 * index.stride);
    }
}
