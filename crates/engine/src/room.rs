//! How much may start now.

/// Finished groups that wait to be settled, per thread, before claiming waits for the store: bounds
/// the memory that results take.
const HELD_PER_THREAD: usize = 8;

/// How many leases may be claimed, when `unfinished` groups of `held` have runs to act on. With
/// `ahead`, one more per thread is claimed so that no thread waits for the next claim.
pub fn room(threads: usize, ahead: bool, unfinished: usize, held: usize) -> usize {
    let wanted = if ahead { 2 * threads } else { threads };
    let bound = HELD_PER_THREAD * threads;
    wanted.saturating_sub(unfinished).min(bound.saturating_sub(held))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_the_threads_but_not_the_memory() {
        assert_eq!(room(4, false, 0, 0), 4);
        assert_eq!(room(4, false, 3, 3), 1);
        assert_eq!(room(4, true, 4, 4), 4);
        assert_eq!(room(4, true, 8, 8), 0);
        assert_eq!(room(4, false, 0, 31), 1);
        assert_eq!(room(4, false, 0, 32), 0);
    }
}
