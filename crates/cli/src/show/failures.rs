//! Failed runs, grouped by their reason.

use super::number::{count, runs};
use anyhow::Result;
use serde::Serialize;
use tidegate::{
    BatchId, Exception, ExceptionState, OpenStore, inspect::ExceptionQuery, limits::MAX_LISTED,
};

/// More groups than this are summed up.
const MOST_GROUPS: usize = 8;
/// Indexes shown for each group.
const EXAMPLES: usize = 3;
/// Reasons that are all different need not be told apart for ever.
const MOST_REASONS: usize = 100;
/// More exceptions than this are not read: grouping needs no more to show what goes wrong.
const MOST_READ: usize = 10 * MAX_LISTED;

/// Runs that failed for the same reason.
#[derive(Debug, PartialEq, Serialize)]
pub struct Failures {
    /// Whether they are tried again.
    pub state: ExceptionState,
    /// Why their last attempt failed: the first line and the last.
    pub reason: String,
    /// All lines, of the first of them.
    pub example: String,
    /// How many.
    pub count: u64,
    /// The first of them.
    pub indexes: Vec<u64>,
}

/// Reads the exceptions of a batch and groups them, the largest group first.
pub async fn read(
    store: &OpenStore,
    batch: BatchId,
    state: Option<ExceptionState>,
) -> Result<Vec<Failures>> {
    let mut groups = Vec::new();
    let mut query = ExceptionQuery { batch, state, from: 0, limit: MAX_LISTED };
    for _ in 0..MOST_READ / MAX_LISTED {
        let exceptions = store.exceptions(query.clone()).await?;
        let Some(last) = exceptions.last() else { break };
        query.from = last.index + 1;
        exceptions.into_iter().for_each(|exception| add(&mut groups, exception));
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.count));
    Ok(groups)
}

fn add(groups: &mut Vec<Failures>, exception: Exception) {
    let reason = in_short(&exception.reason);
    let same = |group: &Failures| group.state == exception.state && group.reason == reason;
    match groups.iter().position(same) {
        Some(at) => groups[at].add(exception.index),
        None if groups.len() >= MOST_REASONS => {}
        None => groups.push(Failures {
            state: exception.state,
            reason,
            example: exception.reason,
            count: 1,
            indexes: vec![exception.index],
        }),
    }
}

/// What failed is said in the first line; a stack trace says in its last why.
fn in_short(reason: &str) -> String {
    let mut lines = reason.lines().map(str::trim_end).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    match lines.next_back() {
        Some(last) => format!("{first} … {}", last.trim_start()),
        None => first.to_owned(),
    }
}

impl Failures {
    fn add(&mut self, index: u64) {
        self.count += 1;
        if self.indexes.len() < EXAMPLES {
            self.indexes.push(index);
        }
    }
}

/// One line per group, of `all` runs that failed.
pub fn text(batch: BatchId, groups: &[Failures], all: u64) -> String {
    let mut text = String::new();
    for group in groups.iter().take(MOST_GROUPS) {
        let examples: Vec<_> = group.indexes.iter().map(|i| format!("{batch}#{i}")).collect();
        let more = if group.count > EXAMPLES as u64 { ", …" } else { "" };
        text += &format!(
            "  {} {}: {} ({}{more})\n",
            count(group.count),
            group.state.as_str(),
            group.reason,
            examples.join(", ")
        );
    }
    let shown: u64 = groups.iter().take(MOST_GROUPS).map(|group| group.count).sum();
    let rest = all.saturating_sub(shown);
    if rest > 0 {
        text += &format!("  … and {} for other reasons\n", runs(rest));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_reasons_are_one_line() {
        let mut groups = Vec::new();
        for index in 0..5 {
            let reason = format!("no luck\n  step {index}\n  at all\n");
            let state = ExceptionState::Dead;
            let batch = BatchId(7);
            add(&mut groups, Exception { batch, index, attempts: 1, state, reason });
        }
        let expected = "  5 dead: no luck … at all (7#0, 7#1, 7#2, …)\n";
        assert_eq!(text(BatchId(7), &groups, 5), expected);
        let more = format!("{expected}  … and 2 runs for other reasons\n");
        assert_eq!(text(BatchId(7), &groups, 7), more);
        assert_eq!(groups[0].example, "no luck\n  step 0\n  at all\n");
    }
}
