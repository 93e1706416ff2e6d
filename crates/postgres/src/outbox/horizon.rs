//! Which ids are decided: no message with such an id can still commit.
//!
//! Ids are drawn from a sequence, in no order of commits: a transaction may draw id 7, another one draw
//! 8 and commit, and a reader that remembers 8 would never see 7. So a reader notes the last id that was
//! drawn at some moment, and then waits until every transaction that was open at a later moment is over.
//! A transaction has its own number before it draws an id (`publish` sees to it), therefore all
//! that drew an id up to the mark are among those.
//!
//! Ids that are decided are read in their order, so that what was committed before another message was
//! published comes first (law 5).

/// Marks beyond this are thinned out: a transaction that is open for long costs precision, no memory.
const MOST_MARKS: usize = 256;

/// What a process knows about ids.
#[derive(Debug, Default)]
pub(super) struct Horizon {
    /// Up to here all are decided.
    decided: i64,
    /// The last id that was drawn when this process looked last.
    drawn: i64,
    marks: Vec<Mark>,
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
    /// No transaction from here on had begun.
    pub xmax: i64,
    /// The last id that was drawn, looked at later than the above.
    pub drawn: i64,
}

/// What a statement is asked about.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub ids: Vec<i64>,
    /// `None`: decided if no transaction is open.
    pub below: Vec<Option<i64>>,
    drawn: i64,
}

impl Horizon {
    /// What to ask the next statement about.
    pub fn ask(&self) -> Asked {
        let marks = self.marks.iter();
        let known = [(self.decided, Some(0)), (self.drawn, None)];
        let asked = marks.map(|mark| (mark.id, Some(mark.below))).chain(known);
        let (ids, below) = asked.unzip();
        Asked { ids, below, drawn: self.drawn }
    }

    /// Learns what a statement saw that was asked about `asked`.
    pub fn learn(&mut self, asked: &Asked, seen: Seen) {
        let over = |below: Option<i64>| seen.xmin >= below.unwrap_or(seen.xmax);
        let decided = asked.ids.iter().zip(&asked.below).filter(|(_, below)| over(**below));
        self.decided = decided.map(|(id, _)| *id).chain([self.decided]).max().unwrap_or(0);
        // `asked.drawn` was looked at before this statement began.
        self.marks.push(Mark { id: asked.drawn, below: seen.xmax });
        self.marks.retain(|mark| mark.id > self.decided);
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

    fn look(horizon: &mut Horizon, xmin: i64, xmax: i64, drawn: i64) -> i64 {
        let asked = horizon.ask();
        horizon.learn(&asked, Seen { xmin, xmax, drawn });
        horizon.decided
    }

    #[test]
    fn without_open_transactions_a_second_look_decides() {
        let mut horizon = Horizon::default();
        assert_eq!(look(&mut horizon, 10, 10, 7), 0);
        assert!(horizon.is_behind());
        assert_eq!(look(&mut horizon, 10, 10, 7), 7);
        assert!(!horizon.is_behind());
    }

    #[test]
    fn an_open_transaction_holds_back_what_was_drawn_since() {
        let mut horizon = Horizon::default();
        look(&mut horizon, 10, 12, 7);
        assert_eq!(look(&mut horizon, 10, 15, 9), 0);
        assert_eq!(look(&mut horizon, 12, 18, 11), 0, "12 may have drawn up to 7");
        assert_eq!(look(&mut horizon, 15, 18, 11), 7, "those below 15 are over, and 9 is later");
        assert_eq!(look(&mut horizon, 18, 20, 11), 11);
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
