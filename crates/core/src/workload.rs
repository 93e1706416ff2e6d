//! Your code: what a batch computes.

use crate::{InvalidSnapshot, Run, RunError, Snapshot, limits::MAX_RESULT_BYTES};
use serde::Serialize;
use std::{collections::BTreeMap, sync::Arc};

/// A computation that batches run. Run i must be a pure function of the snapshot and of what
/// [`Run`] gives it: then results and aggregates are the same bits wherever and in whatever order
/// its runs are carried out.
pub trait Workload: Send + Sync + 'static {
    /// The snapshot, checked and brought into the form that runs work with. Made once per process.
    type Prepared: Send + Sync + 'static;
    /// What one run yields; stored as JSON.
    type Output: Serialize;

    /// The name under which batches ask for it.
    fn name(&self) -> &str;

    /// One line for `workload list`.
    fn about(&self) -> &str {
        ""
    }

    /// A snapshot to start from, as TOML.
    fn example(&self) -> &str {
        ""
    }

    /// Checks a snapshot and prepares it. An error refuses the batch before anything is stored.
    fn prepare(&self, snapshot: &Snapshot) -> Result<Self::Prepared, InvalidSnapshot>;

    /// Carries out one run.
    fn run(&self, prepared: &Self::Prepared, run: &mut Run) -> Result<Self::Output, RunError>;
}

/// A workload with its types erased: what the engine and the registry hold.
pub trait AnyWorkload: Send + Sync + 'static {
    /// See [`Workload::name`].
    fn name(&self) -> &str;
    /// See [`Workload::about`].
    fn about(&self) -> &str;
    /// See [`Workload::example`].
    fn example(&self) -> &str;
    /// See [`Workload::prepare`].
    fn prepare(self: Arc<Self>, snapshot: &Snapshot) -> Result<Arc<dyn Prepared>, InvalidSnapshot>;
}

/// A workload together with a checked snapshot: carries out runs.
pub trait Prepared: Send + Sync + 'static {
    /// Carries out one run and appends its result to `result`, as JSON.
    fn run(&self, run: &mut Run, result: &mut Vec<u8>) -> Result<(), RunError>;
}

struct Typed<W: Workload> {
    workload: Arc<W>,
    prepared: W::Prepared,
}

impl<W: Workload> Prepared for Typed<W> {
    fn run(&self, run: &mut Run, result: &mut Vec<u8>) -> Result<(), RunError> {
        let output = self.workload.run(&self.prepared, run)?;
        let start = result.len();
        serde_json::to_writer(&mut *result, &output)
            .map_err(|error| RunError::permanent(format!("the result is no JSON: {error}")))?;
        let size = result.len() - start;
        if size > MAX_RESULT_BYTES {
            return Err(RunError::permanent(format!(
                "the result has {size} bytes; at most {MAX_RESULT_BYTES} are stored"
            )));
        }
        Ok(())
    }
}

impl<W: Workload> AnyWorkload for W {
    fn name(&self) -> &str {
        Workload::name(self)
    }

    fn about(&self) -> &str {
        Workload::about(self)
    }

    fn example(&self) -> &str {
        Workload::example(self)
    }

    fn prepare(self: Arc<Self>, snapshot: &Snapshot) -> Result<Arc<dyn Prepared>, InvalidSnapshot> {
        let prepared = Workload::prepare(&*self, snapshot)?;
        Ok(Arc::new(Typed { workload: self, prepared }))
    }
}

/// The workloads that a process can carry out, by name.
#[derive(Clone, Default)]
pub struct Workloads(BTreeMap<String, Arc<dyn AnyWorkload>>);

impl Workloads {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one; a later one of the same name replaces it.
    pub fn with(mut self, workload: impl AnyWorkload) -> Self {
        self.0.insert(workload.name().to_owned(), Arc::new(workload));
        self
    }

    /// The one of this name.
    pub fn get(&self, name: &str) -> Option<Arc<dyn AnyWorkload>> {
        self.0.get(name).cloned()
    }

    /// All names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn AnyWorkload>> {
        self.0.values()
    }
}
