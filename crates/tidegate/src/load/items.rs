//! Records as items to deliver.

use super::{errors, identity::Identity};
use std::sync::Arc;
use tidegate_engine::deliver::{Items, Readable};
use tidegate_records::{Record, Records, RecordsError};

/// The records of a file, each with its id.
pub(super) struct Loaded {
    records: Arc<Records>,
    identity: Identity,
}

impl Loaded {
    pub fn new(records: Arc<Records>, identity: &Identity) -> Self {
        Self { records, identity: identity.clone() }
    }

    fn readable(&self, record: Record) -> Readable {
        let id = self.identity.record(record.index);
        let line = record.line;
        let payload = match record.content {
            Ok(content) => errors::unwrapped(content.get()),
            Err(malformed) => Err(format!("line {line}: {}", malformed.reason)),
        };
        Readable { id, payload }
    }
}

impl Items for Loaded {
    fn read(&self, indexes: &[u64]) -> Result<Vec<Readable>, String> {
        let mut readable = Vec::with_capacity(indexes.len());
        // Neighbors are read at once; retries may have none.
        for run in indexes.chunk_by(|one, next| *next == one + 1) {
            let records = self.records.read(run[0]..run[0] + run.len() as u64);
            let records = records.map_err(|error: RecordsError| error.to_string())?;
            readable.extend(records.into_iter().map(|record| self.readable(record)));
        }
        Ok(readable)
    }
}
