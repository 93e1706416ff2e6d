//! What is added up under a name each, as long as there are not too many names.

use super::Series;
use crate::limits::MAX_NAMES;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, ops::Deref};

/// Stands for all names once there are too many of them.
pub const TOO_MANY: &str = "(more than 1000 names)";

/// Sums by name.
///
/// More names than [`MAX_NAMES`] are a mistake, such as an id in place of a category, that must not
/// take a worker's memory. All of them become one then, so that which came first leaves no trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Named<T>(BTreeMap<Box<str>, T>);

/// What can be added to another of its kind.
pub trait Sum: Default {
    /// Adds all of another one.
    fn merge(&mut self, other: &Self);
}

impl Sum for u64 {
    fn merge(&mut self, other: &Self) {
        *self += other;
    }
}

impl Sum for Series {
    fn merge(&mut self, other: &Self) {
        Series::merge(self, other);
    }
}

impl<T: Sum> Sum for Named<T> {
    fn merge(&mut self, other: &Self) {
        Named::merge(self, other);
    }
}

impl<T: Sum> Named<T> {
    /// Changes the sum of this name. The name is copied only when it is new.
    pub fn change(&mut self, name: &str, how: impl FnOnce(&mut T)) {
        if let Some(sum) = self.0.get_mut(name) {
            how(sum);
        } else if name == TOO_MANY || self.0.contains_key(TOO_MANY) {
            how(self.join());
        } else {
            how(self.0.entry(name.into()).or_default());
            if self.0.len() > MAX_NAMES {
                self.join();
            }
        }
    }

    /// Adds all sums of another one.
    pub fn merge(&mut self, other: &Self) {
        for (name, sum) in &other.0 {
            self.change(name, |mine| mine.merge(sum));
        }
    }

    /// Makes one of all.
    fn join(&mut self) -> &mut T {
        let mut all = T::default();
        for sum in std::mem::take(&mut self.0).values() {
            all.merge(sum);
        }
        self.0.entry(TOO_MANY.into()).or_insert(all)
    }
}

impl<T> Deref for Named<T> {
    type Target = BTreeMap<Box<str>, T>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(values: impl Iterator<Item = usize>) -> Named<u64> {
        let mut counts = Named::default();
        values.for_each(|value| counts.change(&value.to_string(), |count| *count += 1));
        counts
    }

    #[test]
    fn too_many_names_are_one_however_they_are_split() {
        let all = counts(0..MAX_NAMES + 1);
        assert_eq!(
            all.iter().map(|(name, n)| (&**name, *n)).collect::<Vec<_>>(),
            [(TOO_MANY, 1001)]
        );
        let mut halves = counts(500..MAX_NAMES + 1);
        halves.merge(&counts(0..500));
        assert_eq!(halves, all);
        let mut late = counts(0..1);
        late.merge(&counts(1..MAX_NAMES + 1));
        assert_eq!(late, all);
        let mut joined = all.clone();
        joined.merge(&counts(0..3));
        assert_eq!(joined[TOO_MANY], 1004);
        assert_eq!(counts(0..MAX_NAMES).len(), MAX_NAMES);
    }
}
