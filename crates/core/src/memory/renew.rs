//! More time for leases, or none.

use super::Content;
use crate::{Fence, Items, Lease, source::Renewal};
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
        for lease in &leases {
            self.extend(lease, now);
            let Some(row) = self.batches.get_mut(&lease.batch) else { continue };
            for exception in row.exceptions.values_mut().filter(|e| e.is_held(lease.fence)) {
                exception.fence = None;
            }
        }
    }
}
