//! Groups that are being sent, and what each waits for: people should learn of one that waits for ever.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard},
};
use tidegate_pacer::Time;

/// The groups that are being sent to one destination.
#[derive(Debug, Default)]
pub(super) struct Waits(Mutex<Groups>);

#[derive(Debug, Default)]
struct Groups {
    last: u64,
    waits: HashMap<u64, Wait>,
}

/// What a group waits for.
#[derive(Debug, Default)]
struct Wait {
    /// An answer to the request that was sent then.
    asked: Option<Time>,
    /// A sink that puts it off since then, for this reason.
    put_off: Option<(Time, String)>,
}

/// One group, for as long as it is being sent.
#[derive(Debug)]
pub(super) struct Waiting<'a> {
    waits: &'a Waits,
    number: u64,
}

impl Waits {
    /// A group is about to be sent.
    pub fn begin(&self) -> Waiting<'_> {
        let mut groups = self.groups();
        groups.last += 1;
        let number = groups.last;
        groups.waits.insert(number, Wait::default());
        Waiting { waits: self, number }
    }

    /// When the oldest request was sent that has no answer.
    pub fn unanswered(&self) -> Option<Time> {
        self.groups().waits.values().filter_map(|wait| wait.asked).min()
    }

    /// Since when the group that waits for longest is put off, and why.
    pub fn put_off(&self) -> Option<(Time, String)> {
        let groups = self.groups();
        groups.waits.values().filter_map(|wait| wait.put_off.as_ref()).min().cloned()
    }

    fn groups(&self) -> MutexGuard<'_, Groups> {
        self.0.lock().expect("nothing panics while it holds the lock")
    }
}

impl Waiting<'_> {
    /// A request was sent.
    pub fn asked(&self, now: Time) {
        self.change(|wait| wait.asked = Some(now));
    }

    /// It was answered: something moved, or the group was put off for a reason.
    pub fn answered(&self, stalled: Option<&str>) {
        self.change(|wait| {
            let asked = wait.asked.take();
            let since = wait.put_off.take().map(|(since, _)| since).or(asked);
            wait.put_off = since.zip(stalled.map(str::to_owned));
        });
    }

    fn change(&self, change: impl FnOnce(&mut Wait)) {
        self.waits.groups().waits.entry(self.number).and_modify(change);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.waits.groups().waits.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_oldest_wait_counts_until_its_group_is_done() {
        let at = Duration::from_secs;
        let waits = Waits::default();
        let (first, second) = (waits.begin(), waits.begin());
        assert_eq!((waits.unanswered(), waits.put_off()), (None, None));
        first.asked(at(1));
        second.asked(at(2));
        assert_eq!(waits.unanswered(), Some(at(1)));
        first.answered(Some("busy"));
        assert_eq!(
            (waits.unanswered(), waits.put_off()),
            (Some(at(2)), Some((at(1), "busy".into())))
        );
        first.asked(at(3));
        first.answered(Some("still busy"));
        assert_eq!(waits.put_off(), Some((at(1), "still busy".into())), "since the first time");
        second.answered(Some("busy"));
        first.asked(at(4));
        first.answered(None);
        assert_eq!(waits.put_off(), Some((at(2), "busy".into())));
        drop(second);
        assert_eq!((waits.unanswered(), waits.put_off()), (None, None));
    }
}
