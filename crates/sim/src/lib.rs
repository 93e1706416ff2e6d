//! Seeded simulation with fault injection, one checker per law.
