//! The frozen input that all runs of a batch share, addressed by its hash.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::fmt;

/// Addresses a snapshot: BLAKE3 over its canonical text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SnapshotHash(pub [u8; 32]);

impl SnapshotHash {
    /// The hash of a canonical text.
    pub fn of(text: &str) -> Self {
        Self(*blake3::hash(text.as_bytes()).as_bytes())
    }

    /// Reads the bytes that stores write.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl fmt::Display for SnapshotHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for SnapshotHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<SnapshotHash> for String {
    fn from(hash: SnapshotHash) -> String {
        hash.to_string()
    }
}

impl TryFrom<String> for SnapshotHash {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        blake3::Hash::from_hex(&text)
            .map(|hash| Self(*hash.as_bytes()))
            .map_err(|_| format!("`{text}` is no snapshot hash"))
    }
}

/// A snapshot: JSON with sorted keys and no white space, so that the same input has the same hash
/// whatever file format or formatting it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    hash: SnapshotHash,
    text: String,
}

impl Snapshot {
    /// Freezes a value.
    pub fn freeze(value: &serde_json::Value) -> Self {
        Self::from_canonical(value.to_string())
    }

    /// Takes a text that a store wrote earlier.
    pub fn from_canonical(text: String) -> Self {
        Self { hash: SnapshotHash::of(&text), text }
    }

    /// Its address.
    pub fn hash(&self) -> SnapshotHash {
        self.hash
    }

    /// Its canonical JSON.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Reads it as a typed value; the error names the field that does not fit.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, InvalidSnapshot> {
        let mut reader = serde_json::Deserializer::from_str(&self.text);
        serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let path = error.path().to_string();
            let problem = error.into_inner().to_string();
            // The position is one in the canonical text, which the user never saw.
            let problem = problem.split(" at line ").next().unwrap_or_default();
            InvalidSnapshot::at(path, problem)
        })
    }
}

/// A snapshot that its workload cannot use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid snapshot at `{path}`: {problem}")]
pub struct InvalidSnapshot {
    /// Where, in the way of `teams[0].players`.
    pub path: String,
    /// What is wrong there.
    pub problem: String,
}

impl InvalidSnapshot {
    /// `problem` at `path`.
    pub fn at(path: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { path: path.into(), problem: problem.into() }
    }
}
