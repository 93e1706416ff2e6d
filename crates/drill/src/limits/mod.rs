//! Who may send now: pure decisions, with time as an argument.
//!
//! Time is counted from the start of the service.

mod account;
mod window;

#[cfg(test)]
mod tests;

pub use account::{Account, Quota, Standing};

use crate::spec::Spec;
use std::collections::HashMap;

/// Most credentials that have accounts of their own; further ones share one.
const MAX_ACCOUNTS: usize = 10_000;

/// Which limit forbids a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Too many in flight.
    Concurrency,
    /// Too many in the last second.
    Rate,
    /// The budget with this index in the spec is used up.
    Budget(usize),
}

/// An account, by its place among all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountId(usize);

/// The accounts of all credentials.
#[derive(Debug, Default)]
pub struct Accounts {
    by_credential: HashMap<Box<str>, AccountId>,
    accounts: Vec<Account>,
}

impl Accounts {
    /// The account of `credential`, opened if there is none yet.
    pub fn open(&mut self, credential: &str, spec: &Spec) -> AccountId {
        if let Some(id) = self.by_credential.get(credential) {
            return *id;
        }
        if self.accounts.len() > MAX_ACCOUNTS {
            return AccountId(MAX_ACCOUNTS);
        }
        let id = AccountId(self.accounts.len());
        self.accounts.push(Account::new(spec));
        self.by_credential.insert(credential.into(), id);
        id
    }

    pub fn get(&mut self, id: AccountId) -> &mut Account {
        &mut self.accounts[id.0]
    }

    /// Forgets what all have used, but not what they have in flight.
    pub fn clear(&mut self) {
        self.accounts.iter_mut().for_each(Account::clear);
    }
}
