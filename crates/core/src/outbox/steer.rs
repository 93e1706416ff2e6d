//! What people decide about dead messages, carried out in pages.
//!
//! There may be millions of them. A page is one short transaction: relays go on between pages, what is done stays
//! done when a command ends early, and the same command goes on from there.

use super::{AuditLine, InspectOutbox, MessageId, Selection};
use crate::{StoreError, limits::MAX_STEERED};
use std::collections::BTreeSet;

/// What is to become of dead messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// They become due again, with all attempts.
    Retry,
    /// They are removed for good; what waits behind one goes on.
    Drop,
}

impl Decision {
    /// As it stands in audit lines.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Drop => "drop",
        }
    }
}

/// One page of a decision.
#[derive(Clone, Debug)]
pub struct SteerPage {
    /// What is decided.
    pub decision: Decision,
    /// About which of the dead.
    pub which: Selection,
    /// Who decided, and why.
    pub by: AuditLine,
    /// Only behind this one.
    pub after: Option<MessageId>,
    /// At most so many dead messages are looked at, chosen or not; those that are named, if any are.
    pub most: usize,
    /// The audit line of the pages before.
    pub line: Option<i64>,
}

/// What one page did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steered {
    /// How many messages it changed.
    pub messages: u64,
    /// Behind which the next page begins; `None`: there is no more. A store may end a page early.
    pub next: Option<MessageId>,
    /// The command's audit line, if it has one by now.
    pub line: Option<i64>,
}

/// A decision that is being carried out.
pub struct Steering {
    page: SteerPage,
    /// Those that are named and were not asked for yet, a page each.
    named: Vec<Vec<MessageId>>,
    messages: u64,
    is_over: bool,
}

impl Steering {
    /// Nothing is done yet.
    pub fn new(decision: Decision, which: Selection, by: AuditLine) -> Self {
        let ids: Option<BTreeSet<MessageId>> =
            which.ids.as_ref().map(|ids| ids.iter().cloned().collect());
        let is_over = ids.as_ref().is_some_and(BTreeSet::is_empty);
        let ids: Vec<MessageId> = ids.into_iter().flatten().collect();
        let mut named: Vec<Vec<MessageId>> =
            ids.chunks(MAX_STEERED).map(<[MessageId]>::to_vec).collect();
        named.reverse();
        let page = SteerPage { decision, which, by, after: None, most: MAX_STEERED, line: None };
        Self { page, named, messages: 0, is_over }
    }

    /// How many messages were changed so far: that is durable.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// Carries out one more page. Returns whether there was one. If it fails, the pages before stay done, and it may
    /// be called again: whatever became of this page, no message is changed twice.
    pub async fn step(
        &mut self,
        store: &(impl InspectOutbox + ?Sized),
    ) -> Result<bool, StoreError> {
        if self.is_over {
            return Ok(false);
        }
        if let Some(ids) = self.named.last() {
            self.page.which.ids = Some(ids.clone());
        }
        let steered = store.steer_dead(self.page.clone()).await?;
        self.messages += steered.messages;
        self.page.line = steered.line;
        self.page.after = steered.next;
        if self.page.after.is_none() {
            self.named.pop();
            self.is_over = self.named.is_empty();
        }
        Ok(true)
    }

    /// Carries out what is left. Returns how many messages were changed in all.
    pub async fn finish(
        mut self,
        store: &(impl InspectOutbox + ?Sized),
    ) -> Result<u64, StoreError> {
        while self.step(store).await? {}
        Ok(self.messages)
    }
}
