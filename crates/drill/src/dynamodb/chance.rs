//! Which faults there are, and whom they meet.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::{collections::BTreeMap, time::Duration};

/// The faults that a proxy injects. Shares are from 0 to 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// The share of the entries of BatchWriteItem and BatchGetItem that are handed back. A request of which nothing
    /// is left is throttled, as DynamoDB does it.
    pub unprocessed: f64,
    /// The share of the requests of an operation, such as `UpdateItem`, that are refused for their rate.
    pub throttled: BTreeMap<&'static str, f64>,
    /// The share of the requests of an operation that are refused with a code of DynamoDB, such as
    /// `TransactionConflictException`. Of a transaction, a code that does not end in `Exception` is that of an action.
    pub refused: BTreeMap<&'static str, (&'static str, f64)>,
    /// How late an index shows a change, at most. Each change of an item comes to each index after a time of its
    /// own; those of one item come in order.
    pub index_lag: Duration,
    /// How much later every request is carried out.
    pub latency: Duration,
    /// How much later still, at most, requests of an operation, such as `Scan`, are carried out: drawn for each.
    pub slow: BTreeMap<&'static str, Duration>,
    /// The share of the requests whose connection is cut, and which are not carried out.
    pub cut_before: f64,
    /// The share of the requests that are carried out, and whose connection is cut then.
    pub cut_after: f64,
}

/// What meets one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate {
    pub latency: Duration,
    pub cut_before: bool,
    pub throttled: bool,
    pub refused: Option<&'static str>,
    pub cut_after: bool,
}

/// The faults, and where all randomness comes from.
pub struct Chance {
    faults: Faults,
    luck: ChaCha8Rng,
    /// How often indexes began to lag. Copies of a table from an earlier time are of no use.
    lag_number: u64,
}

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self { faults: Faults::default(), luck: ChaCha8Rng::seed_from_u64(seed), lag_number: 0 }
    }

    pub fn set(&mut self, faults: Faults) {
        self.lag_number += u64::from(!self.lags() && !faults.index_lag.is_zero());
        self.faults = faults;
    }

    pub fn fate(&mut self, operation: &str) -> Fate {
        let throttled = self.faults.throttled.get(operation).copied().unwrap_or_default();
        let (code, refused) = self.faults.refused.get(operation).copied().unwrap_or_default();
        let slow = self.faults.slow.get(operation).copied().unwrap_or_default();
        Fate {
            latency: self.faults.latency + slow.mul_f64(self.luck.random()),
            cut_before: self.happens(self.faults.cut_before),
            throttled: self.happens(throttled),
            refused: self.happens(refused).then_some(code),
            cut_after: self.happens(self.faults.cut_after),
        }
    }

    /// Whether one entry of a batch is handed back.
    pub fn unprocessed(&mut self) -> bool {
        self.happens(self.faults.unprocessed)
    }

    /// One of so many.
    pub fn pick(&mut self, count: usize) -> usize {
        self.luck.random_range(0..count.max(1))
    }

    pub fn lags(&self) -> bool {
        !self.faults.index_lag.is_zero()
    }

    pub fn lag_number(&self) -> u64 {
        self.lag_number
    }

    /// How late one index shows one change.
    pub fn lag(&mut self) -> Duration {
        self.faults.index_lag.mul_f64(self.luck.random())
    }

    /// Drawn in any case: what meets a request does not depend on which faults met the ones before.
    fn happens(&mut self, share: f64) -> bool {
        self.luck.random::<f64>() < share
    }
}
