//! Counts per value, or per bucket once there are too many values.

use serde::{Deserialize, Serialize};

/// Up to this many distinct values quantiles are exact: enough for scores, counts and ranks.
const MAX_DISTINCT: usize = 512;
/// Bits of a value's key that a bucket leaves out: 2⁷ buckets per power of two remain, so that a
/// bucket's middle is at most 0.4 % away from any value in it.
const BUCKET_BITS: u32 = 45;
/// Values gathered before they are sorted into the bins.
const PENDING: usize = 4096;

/// A mergeable picture of a distribution.
///
/// Whether it holds values or buckets depends only on the set of values added: a part that has
/// overflowed makes every whole it belongs to overflow. So the split into parts leaves no trace.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    bucketed: bool,
    /// Key and count, by key.
    bins: Vec<(i64, u64)>,
    pending: Vec<i64>,
}

impl Histogram {
    /// Adds a value.
    pub fn add(&mut self, value: f64) {
        self.pending.push(key(value));
        if self.pending.len() >= PENDING {
            self.sort_in();
        }
    }

    /// Adds all values of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        self.sort_in();
        let other = other.sorted();
        self.absorb(other.bucketed, other.bins);
    }

    /// Value (or a bucket's middle) and count, in ascending order.
    pub fn bins(&self) -> Vec<(f64, u64)> {
        let sorted = self.sorted();
        let value = |k| if sorted.bucketed { middle(k) } else { unkey(k) };
        sorted.bins.iter().map(|(key, count)| (value(*key), *count)).collect()
    }

    fn sorted(&self) -> Self {
        let mut sorted = self.clone();
        sorted.sort_in();
        sorted
    }

    fn sort_in(&mut self) {
        let mut keys = std::mem::take(&mut self.pending);
        if self.bucketed {
            keys.iter_mut().for_each(|key| *key >>= BUCKET_BITS);
        }
        keys.sort_unstable();
        let bins = keys.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u64)).collect();
        self.absorb(self.bucketed, bins);
        keys.clear();
        self.pending = keys;
    }

    fn absorb(&mut self, bucketed: bool, mut bins: Vec<(i64, u64)>) {
        if bucketed && !self.bucketed {
            self.spill();
        } else if self.bucketed && !bucketed {
            to_buckets(&mut bins);
        }
        self.bins.append(&mut bins);
        add_up(&mut self.bins);
        if !self.bucketed && self.bins.len() > MAX_DISTINCT {
            self.spill();
        }
    }

    fn spill(&mut self) {
        self.bucketed = true;
        to_buckets(&mut self.bins);
    }
}

fn to_buckets(bins: &mut Vec<(i64, u64)>) {
    bins.iter_mut().for_each(|(key, _)| *key >>= BUCKET_BITS);
    add_up(bins);
}

/// Sorts and joins equal keys. The sort is stable because it finds the sorted runs it is given.
fn add_up(bins: &mut Vec<(i64, u64)>) {
    bins.sort_by_key(|(key, _)| *key);
    bins.dedup_by(|later, earlier| {
        let same = later.0 == earlier.0;
        if same {
            earlier.1 += later.1;
        }
        same
    });
}

/// A number's bits as an integer of the same order. Both zeros have the same key.
fn key(value: f64) -> i64 {
    let bits = (value + 0.0).to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

fn unkey(key: i64) -> f64 {
    f64::from_bits((key ^ (((key >> 63) as u64) >> 1) as i64) as u64)
}

/// What stands for the values of a bucket. The two buckets around zero hold zero and numbers that
/// no distribution tells from it.
fn middle(bucket: i64) -> f64 {
    if bucket == 0 || bucket == -1 {
        return 0.0;
    }
    let low = bucket << BUCKET_BITS;
    unkey(low + (1 << (BUCKET_BITS - 1)))
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        let (mine, theirs) = (self.sorted(), other.sorted());
        mine.bucketed == theirs.bucketed && mine.bins == theirs.bins
    }
}

/// The stored form: keys as differences, which take fewer bytes.
#[derive(Serialize, Deserialize)]
struct Stored {
    bucketed: bool,
    steps: Vec<(i64, u64)>,
}

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let sorted = self.sorted();
        let mut previous = 0i64;
        let step = |(key, count): &(i64, u64)| {
            let step = key.wrapping_sub(previous);
            previous = *key;
            (step, *count)
        };
        let steps = sorted.bins.iter().map(step).collect();
        Stored { bucketed: sorted.bucketed, steps }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = Stored::deserialize(deserializer)?;
        let mut previous = 0i64;
        let bin = |(step, count): (i64, u64)| {
            previous = previous.wrapping_add(step);
            (previous, count)
        };
        let bins = stored.steps.into_iter().map(bin).collect();
        Ok(Histogram { bucketed: stored.bucketed, bins, pending: Vec::new() })
    }
}
