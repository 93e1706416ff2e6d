//! What was asked of DynamoDB, and what that cost: by operation.

use aws_sdk_dynamodb::{
    operation::{
        batch_get_item::BatchGetItemOutput, batch_write_item::BatchWriteItemOutput,
        create_table::CreateTableOutput, delete_item::DeleteItemOutput,
        describe_table::DescribeTableOutput, describe_time_to_live::DescribeTimeToLiveOutput,
        get_item::GetItemOutput, put_item::PutItemOutput, query::QueryOutput, scan::ScanOutput,
        transact_write_items::TransactWriteItemsOutput, update_item::UpdateItemOutput,
        update_table::UpdateTableOutput, update_time_to_live::UpdateTimeToLiveOutput,
    },
    types::ConsumedCapacity,
};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard},
};

/// What one operation cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Requests that were sent, those that were throttled included.
    pub requests: u64,
    /// Requests that were throttled.
    pub throttled: u64,
    /// Read capacity units, of the table and its indexes.
    pub read_units: f64,
    /// Write capacity units, of the table and its indexes.
    pub write_units: f64,
}

/// What each operation cost so far, by its name: `Query`, `UpdateItem`, …
pub type Usage = BTreeMap<&'static str, Cost>;

/// Adds up what operations cost.
#[derive(Debug, Default)]
pub(crate) struct Meter(Mutex<Usage>);

impl Meter {
    pub fn usage(&self) -> Usage {
        self.lock().clone()
    }

    pub fn sent(&self, operation: &'static str) {
        self.lock().entry(operation).or_default().requests += 1;
    }

    pub fn throttled(&self, operation: &'static str) {
        self.lock().entry(operation).or_default().throttled += 1;
    }

    pub fn answered<O: Answer>(&self, answer: &O) {
        let units: f64 = answer.consumed().iter().filter_map(|it| it.capacity_units()).sum();
        let mut usage = self.lock();
        let cost = usage.entry(O::OPERATION).or_default();
        match O::WRITES {
            true => cost.write_units += units,
            false => cost.read_units += units,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Usage> {
        self.0.lock().expect("nothing panics while it holds the lock")
    }
}

/// An answer of DynamoDB.
pub(crate) trait Answer {
    /// What was asked for.
    const OPERATION: &'static str;
    const WRITES: bool;

    /// What it cost.
    fn consumed(&self) -> &[ConsumedCapacity];
}

macro_rules! answers {
    ($($output:ty, $name:literal, $writes:literal, |$it:ident| $consumed:expr;)*) => {$(
        impl Answer for $output {
            const OPERATION: &'static str = $name;
            const WRITES: bool = $writes;
            fn consumed(&self) -> &[ConsumedCapacity] {
                let $it = self;
                $consumed
            }
        }
    )*};
}

fn one(consumed: Option<&ConsumedCapacity>) -> &[ConsumedCapacity] {
    consumed.map_or(&[], std::slice::from_ref)
}

answers! {
    GetItemOutput, "GetItem", false, |it| one(it.consumed_capacity());
    BatchGetItemOutput, "BatchGetItem", false, |it| it.consumed_capacity();
    QueryOutput, "Query", false, |it| one(it.consumed_capacity());
    ScanOutput, "Scan", false, |it| one(it.consumed_capacity());
    PutItemOutput, "PutItem", true, |it| one(it.consumed_capacity());
    UpdateItemOutput, "UpdateItem", true, |it| one(it.consumed_capacity());
    DeleteItemOutput, "DeleteItem", true, |it| one(it.consumed_capacity());
    BatchWriteItemOutput, "BatchWriteItem", true, |it| it.consumed_capacity();
    TransactWriteItemsOutput, "TransactWriteItems", true, |it| it.consumed_capacity();
    DescribeTableOutput, "DescribeTable", false, |_it| &[];
    DescribeTimeToLiveOutput, "DescribeTimeToLive", false, |_it| &[];
    CreateTableOutput, "CreateTable", true, |_it| &[];
    UpdateTableOutput, "UpdateTable", true, |_it| &[];
    UpdateTimeToLiveOutput, "UpdateTimeToLive", true, |_it| &[];
}
