//! What makes two loads the same.

use crate::OpenStore;
use serde::Deserialize;
use serde_json::json;
use tidegate_core::{Batch, InvalidSnapshot, Run, RunError, Snapshot, StoreError, Workload};
use tidegate_records::Records;

/// What the workload of a load begins with.
const PREFIX: &str = "load:";

/// Names a load by its records, where they go and what is asked for there.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    /// The batch's workload: nobody but a process with the same file and sink can carry it out.
    pub workload: String,
    /// For people.
    pub snapshot: Snapshot,
    /// The records' own part of it: ids of records go by it, wherever they are sent.
    pub content: String,
}

impl Identity {
    pub fn new(records: &Records, place: &str, to: &str, operation: &str) -> Self {
        let (content, format) = (records.hash().to_hex(), records.format().name());
        let whole = [content.as_str(), format, place, operation].join("\n");
        let load = blake3::hash(whole.as_bytes()).to_hex();
        let snapshot = Snapshot::freeze(&json!({
            "file": records.name(),
            "format": format,
            "content": content.as_str(),
            "to": to,
            "operation": operation,
        }));
        Self {
            workload: format!("{PREFIX}{}", &load[..16]),
            snapshot,
            content: content[..16].to_owned(),
        }
    }

    /// The id of a record: the same in every attempt and every load of the same content.
    pub fn record(&self, index: u64) -> String {
        format!("{}-{index}", self.content)
    }
}

/// What a load is, for people.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct About {
    /// Its records.
    pub file: String,
    /// The sink.
    pub to: String,
    /// What is asked of the sink.
    pub operation: String,
}

/// What the load is that a batch stands for; nothing if it is no load.
pub async fn about(store: &OpenStore, batch: &Batch) -> Result<Option<About>, StoreError> {
    if !batch.workload.starts_with(PREFIX) {
        return Ok(None);
    }
    let snapshot = store.snapshot(batch.snapshot).await?;
    Ok(snapshot.and_then(|snapshot| serde_json::from_str(snapshot.text()).ok()))
}

/// A load is carried out by a deliverer; as a workload it has a name and nothing else.
impl Workload for Identity {
    type Prepared = ();
    type Output = ();

    fn name(&self) -> &str {
        &self.workload
    }

    fn prepare(&self, _: &Snapshot) -> Result<(), InvalidSnapshot> {
        Ok(())
    }

    fn run(&self, (): &(), _: &mut Run) -> Result<(), RunError> {
        Err(RunError::new("a record is delivered by `tidegate load`"))
    }
}
