//! Records as items to deliver.

use super::{identity::Identity, origin::Origin};
use std::sync::Arc;
use tidegate_engine::deliver::{Items, Readable};
use tidegate_records::{Records, RecordsError};

/// The records of a file, each with its id.
pub(super) struct Loaded {
    records: Arc<Records>,
    identity: Identity,
}

impl Loaded {
    pub fn new(records: Arc<Records>, identity: &Identity) -> Self {
        Self { records, identity: identity.clone() }
    }
}

impl From<Origin> for Readable {
    fn from(origin: Origin) -> Self {
        let payload = origin.content.map(|content| Box::<str>::from(content).into_string());
        Self { id: origin.id, payload: payload.map_err(|flaw| flaw.reason) }
    }
}

impl Items for Loaded {
    fn read(&self, indexes: &[u64]) -> Result<Vec<Readable>, String> {
        let mut readable = Vec::with_capacity(indexes.len());
        // Neighbors are read at once; retries may have none.
        for run in indexes.chunk_by(|one, next| *next == one + 1) {
            let records = self.records.read(run[0]..run[0] + run.len() as u64);
            let records = records.map_err(|error: RecordsError| error.to_string())?;
            let origins = records.into_iter().map(|record| Origin::of(record, &self.identity));
            readable.extend(origins.map(Readable::from));
        }
        Ok(readable)
    }
}
