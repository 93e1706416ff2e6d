//! Tidegate: durable work in batches.
