//! Which ids are decided: no message with such an id can still commit.
//!
//! Ids are drawn from a sequence, in no order of commits: a transaction may draw id 7, another one draw
//! 8 and commit, and a reader that remembers 8 would never see 7. So a reader notes the last id that was
//! drawn, then draws a number for its own transaction, and waits until every transaction with a lower
//! number is over. Whoever publishes has its number before it draws an id (`publish` sees to it),
//! therefore all that drew an id up to the mark are among those.
//!
//! A number of its own is needed because a snapshot does not tell which transactions have begun: its
//! `xmax` is the first number behind those that are *over*, and the youngest that are open lie beyond.
//! It is drawn only if there are ids without a mark.
//!
//! A mark must outlive a crash, because this process does: the server would draw the same ids again, for
//! messages that nobody looks for any more. Therefore the statement that draws a number returns when all
//! that it saw drawn is durable.
//!
//! Ids that are decided are read in their order, so that what was committed before another message was
//! published comes first (law 5).

/// Marks beyond this are thinned out: a transaction that is open for long costs precision, no memory.
const MOST_MARKS: usize = 256;

/// After so many looks that decided nothing, a number is drawn anew.
const DOUBTFUL: u32 = 16;

/// What a process knows about ids.
#[derive(Debug, Default)]
pub(super) struct Horizon {
    /// Up to here all are decided.
    decided: i64,
    /// The last id that was drawn when this process looked last.
    drawn: i64,
    marks: Vec<Mark>,
    /// Looks that decided nothing although there are marks.
    vain: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    id: i64,
    /// Ids up to `id` are decided when all transactions below this one are over.
    below: i64,
}

/// What a statement saw.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// All transactions below are over.
    pub xmin: i64,
    /// The last id that was drawn, looked at later than the above.
    pub drawn: i64,
    /// The number that the statement drew for itself, later still.
    pub own: Option<i64>,
}

/// What a statement is asked about.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub ids: Vec<i64>,
    pub below: Vec<i64>,
    /// Ids beyond this have no mark yet.
    pub marked: i64,
}

impl Horizon {
    /// What to ask the next statement about.
    pub fn ask(&self) -> Asked {
        let marks = self.marks.iter().map(|mark| (mark.id, mark.below));
        let (ids, below): (Vec<i64>, _) = marks.chain([(self.decided, 0)]).unzip();
        // A crash may have taken back the numbers of all marks: now and then there is a new one.
        let is_doubtful = self.vain % DOUBTFUL == DOUBTFUL - 1;
        let marked = ids.iter().copied().max().filter(|_| !is_doubtful).unwrap_or(self.decided);
        Asked { ids, below, marked }
    }

    /// Learns what a statement saw that was asked about `asked`.
    pub fn learn(&mut self, asked: &Asked, seen: Seen) {
        let before = self.decided;
        let decided = asked.ids.iter().zip(&asked.below).filter(|(_, below)| seen.xmin >= **below);
        self.decided = decided.map(|(id, _)| *id).chain([self.decided]).max().unwrap_or(0);
        self.marks.extend(seen.own.map(|own| Mark { id: seen.drawn, below: own }));
        self.marks.retain(|mark| mark.id > self.decided);
        let is_vain = self.decided == before && !self.marks.is_empty();
        self.vain = if is_vain { self.vain.wrapping_add(1) } else { 0 };
        if self.marks.len() > MOST_MARKS {
            let mut keep = false;
            self.marks.retain(|_| {
                keep = !keep;
                keep
            });
        }
        self.drawn = self.drawn.max(seen.drawn);
    }

    /// Whether ids were drawn that are not decided yet.
    pub fn is_behind(&self) -> bool {
        self.drawn > self.decided
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A statement that draws the number `next` if it needs one.
    fn look(horizon: &mut Horizon, xmin: i64, next: i64, drawn: i64) -> i64 {
        let asked = horizon.ask();
        let own = (drawn > asked.marked).then_some(next);
        horizon.learn(&asked, Seen { xmin, drawn, own });
        horizon.decided
    }

    #[test]
    fn without_open_transactions_a_second_look_decides() {
        let mut horizon = Horizon::default();
        assert_eq!(look(&mut horizon, 10, 10, 7), 0);
        assert!(horizon.is_behind());
        assert_eq!(look(&mut horizon, 11, 11, 7), 7);
        assert!(!horizon.is_behind());
        assert_eq!(horizon.ask(), Asked { ids: vec![7], below: vec![0], marked: 7 });
    }

    #[test]
    fn an_open_transaction_holds_back_what_was_drawn_since() {
        let mut horizon = Horizon::default();
        look(&mut horizon, 10, 12, 7);
        assert_eq!(look(&mut horizon, 10, 15, 9), 0);
        assert_eq!(look(&mut horizon, 11, 18, 11), 0, "11 may have drawn up to 7");
        assert_eq!(look(&mut horizon, 12, 19, 11), 7, "those below 12 are over, and 9 is later");
        assert_eq!(look(&mut horizon, 20, 21, 11), 11);
    }

    #[test]
    fn numbers_that_a_crash_took_back_are_drawn_again() {
        let mut horizon = Horizon::default();
        look(&mut horizon, 10, 500, 7);
        let looks = (0..=DOUBTFUL).find(|n| look(&mut horizon, 11, 11 + i64::from(*n), 7) == 7);
        assert!(looks.is_none(), "its transaction is open");
        let mut horizon = Horizon::default();
        look(&mut horizon, 10, 500, 7);
        let next = |n: u32| 11 + i64::from(n / DOUBTFUL);
        let looks = (0..3 * DOUBTFUL).find(|n| look(&mut horizon, next(*n), next(*n), 7) == 7);
        assert!(looks.is_some(), "the server never comes to 500");
    }

    #[test]
    fn marks_are_bounded() {
        let mut horizon = Horizon::default();
        (0..10_000).for_each(|n| {
            look(&mut horizon, 1, 10 + n, n);
        });
        assert!(horizon.marks.len() <= MOST_MARKS);
        assert!(look(&mut horizon, 20_000, 20_000, 9_999) >= 9_900);
    }
}
