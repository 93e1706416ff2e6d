//! Whose consumers read what a sink sends.

use serde::Deserialize;

/// How a message is laid out: which names its headers have, and what stands beside them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Envelope {
    /// As the page of the sink tells.
    #[default]
    Tidegate,
    /// As consumers that are written with Brighter expect it, see [`crate::brighter`].
    Brighter,
}
