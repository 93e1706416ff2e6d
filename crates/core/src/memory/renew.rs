//! More time for leases, or none.

use super::{Content, ExceptionRow, RangeLease, Tries};
use crate::{ExceptionState, Fence, Items, Lease, source::Renewal, suspect::LOST_TWICE};
use std::time::Duration;

impl Content {
    pub(super) fn renew(&mut self, request: Renewal, now: Duration) -> Vec<Fence> {
        let until = now + request.lease;
        request.leases.iter().filter(|lease| !self.extend(lease, until)).map(|l| l.fence).collect()
    }

    fn extend(&mut self, lease: &Lease, until: Duration) -> bool {
        let Some(row) = self.batches.get_mut(&lease.batch) else { return false };
        match &lease.items {
            Items::Range(range) => match row.leases.get_mut(&range.hi) {
                Some(held) if held.fence == lease.fence => {
                    held.expires = until;
                    true
                }
                _ => false,
            },
            Items::Retries(retries) => {
                let mut all = true;
                for retry in retries {
                    match row.exceptions.get_mut(&retry.index) {
                        Some(held) if held.is_held(lease.fence) => held.due = until,
                        _ => all = false,
                    }
                }
                all
            }
        }
    }

    pub(super) fn give_back(&mut self, leases: Vec<Lease>, now: Duration) {
        for Lease { batch, fence, .. } in &leases {
            let Some(row) = self.batches.get_mut(batch) else { continue };
            row.leases.values_mut().for_each(|lease| lease.give_back(*fence, now));
            row.exceptions.values_mut().for_each(|exception| exception.give_back(*fence, now));
        }
    }
}

impl RangeLease {
    fn give_back(&mut self, fence: Fence, now: Duration) {
        if self.fence == fence {
            self.fence = Fence::NOBODY;
            self.expires = now;
            self.tries.leases -= 1;
        } else {
            self.tries.was_alive(fence);
        }
        self.suspect &= self.tries.leases >= LOST_TWICE;
    }
}

impl ExceptionRow {
    fn give_back(&mut self, fence: Fence, now: Duration) {
        if self.is_held(fence) {
            self.fence = None;
            self.due = now;
            self.tries.leases -= 1;
        } else if self.state == ExceptionState::Retry {
            self.tries.was_alive(fence);
        }
    }
}

impl Tries {
    /// Takes back that the lease with this fence was lost, if that was the last loss.
    fn was_alive(&mut self, fence: Fence) {
        if self.lost == Some(fence) {
            self.leases -= 1;
            self.lost = None;
        }
    }
}
